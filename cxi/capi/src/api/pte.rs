//! Portal table entries.

use std::ffi::c_int;

use cxi::Resource;
use cxi_ioctl::abi::portal::{
    PtAllocOpts, PteAllocCmd, PteFreeCmd, PteLeInvalidateCmd, PteMapCmd, PteStatus,
    PteTransitionSmCmd, PteUnmapCmd,
};

use crate::child::{Domain, Evtq, Lni, Pte, PteMap};
use crate::device::Counted;
use crate::failure::Failure;
use crate::ffi::{In, Out, status};
use crate::handle::{Handle, Room, Shared, Tag};
use crate::send::{pte_status, send};

#[unsafe(no_mangle)]
extern "C" fn cxil_alloc_pte(
    lni: Handle<Lni>,
    evtq: Handle<Evtq>,
    opts: In<PtAllocOpts>,
    pte: Out<*mut u32>,
) -> c_int {
    status(|| {
        let lni = lni.get()?;
        let opts = opts.get()?;
        let pte = Room::new(pte)?;
        let evtq = evtq.optional()?.map_or(0, |evtq| evtq.number);
        let command = PteAllocCmd::of(lni.id.get(), evtq, opts);
        let response = lni.send(&command, Some(Resource::Ptes))?;
        pte.fill(Pte {
            number: Shared::new(response.pte_number),
            dev: Counted::new(&lni.dev),
            tag: Tag::of::<Pte>(),
        });
        Ok(())
    })
}

#[unsafe(no_mangle)]
extern "C" fn cxil_destroy_pte(pte: Handle<Pte>) -> c_int {
    status(|| pte.end(|pte| send(&pte.dev, &PteFreeCmd::of(pte.number.get()))))
}

#[unsafe(no_mangle)]
extern "C" fn cxil_map_pte(
    pte: Handle<Pte>,
    domain: Handle<Domain>,
    pid_offset: u32,
    is_multicast: u8,
    pte_map: Out<*mut ()>,
) -> c_int {
    status(|| {
        let pte = pte.get()?;
        let domain = domain.get()?;
        let pte_map = Room::new(pte_map)?;
        let is_multicast = u8::from(is_multicast != 0);
        let command = PteMapCmd::of(pte.number.get(), domain.number, pid_offset, is_multicast);
        let response = send(&pte.dev, &command)?;
        pte_map.fill(PteMap {
            nothing: Shared::new(()),
            dev: Counted::new(&pte.dev),
            index: response.pte_index,
            tag: Tag::of::<PteMap>(),
        });
        Ok(())
    })
}

#[unsafe(no_mangle)]
extern "C" fn cxil_unmap_pte(pte_map: Handle<PteMap>) -> c_int {
    status(|| pte_map.end(|map| send(&map.dev, &PteUnmapCmd::of(map.index))))
}

#[unsafe(no_mangle)]
extern "C" fn cxil_invalidate_pte_le(pte: Handle<Pte>, buffer_id: u32, list: u32) -> c_int {
    status(|| {
        let pte = pte.get()?;
        let command = PteLeInvalidateCmd::of(pte.number.get(), buffer_id, list);
        send(&pte.dev, &command)
    })
}

#[unsafe(no_mangle)]
extern "C" fn cxil_pte_status(pte: Handle<Pte>, pte_state: Out<PteStatus>) -> c_int {
    status(|| {
        let pte = pte.get()?;
        let input = pte_state.current().ok_or_else(Failure::argument)?;
        pte_state.set(pte_status(&pte.dev, pte.number.get(), &input)?);
        Ok(())
    })
}

#[unsafe(no_mangle)]
extern "C" fn cxil_pte_transition_sm(pte: Handle<Pte>, drop_count: u32) -> c_int {
    status(|| {
        let pte = pte.get()?;
        let command = PteTransitionSmCmd::of(pte.number.get(), drop_count);
        send(&pte.dev, &command)
    })
}
