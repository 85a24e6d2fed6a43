//! Command queues.

use std::ffi::c_int;

use cxi::Resource;
use cxi_ioctl::LniForm;
use cxi_ioctl::abi::queue::{
    CQ_IS_TX, CqAckCounterCmd, CqAllocBufCmd, CqAllocCmd, CqAllocOpts, CqAllocOptsBuf, CqAllocResp,
    CqFreeCmd,
};
use zerocopy::FromZeros;

use crate::child::{Cmdq, Evtq, Lni};
use crate::device::{Counted, Dev};
use crate::failure::Result;
use crate::ffi::{In, Memory, Out, status};
use crate::handle::{Handle, Room, Shared, Tag};
use crate::public::CmdqPublic;
use crate::send::send;
use crate::window::Window;

#[unsafe(no_mangle)]
extern "C" fn cxil_alloc_cmdq(
    lni: Handle<Lni>,
    evtq: Handle<Evtq>,
    opts: In<CqAllocOpts>,
    cmdq: Out<*mut CmdqPublic>,
) -> c_int {
    status(|| {
        let opts = CqAllocOptsBuf { opts: opts.get()?, ..CqAllocOptsBuf::new_zeroed() };
        alloc(lni, evtq, opts, cmdq)
    })
}

#[unsafe(no_mangle)]
extern "C" fn cxil_alloc_buf_cmdq(
    lni: Handle<Lni>,
    evtq: Handle<Evtq>,
    opts: In<CqAllocOptsBuf>,
    cmdq: Out<*mut CmdqPublic>,
) -> c_int {
    status(|| alloc(lni, evtq, opts.get()?, cmdq))
}

fn alloc(
    lni: Handle<Lni>,
    evtq: Handle<Evtq>,
    opts: CqAllocOptsBuf,
    cmdq: Out<*mut CmdqPublic>,
) -> Result<()> {
    let lni = lni.get()?;
    let cmdq = Room::new(cmdq)?;
    let eq = evtq.optional()?.map_or(0, |evtq| evtq.public.get().eqn);
    let response = send_alloc(lni, eq, opts)?;
    let block = map(&lni.dev, &opts, &response).inspect_err(|_| {
        // The caller gets the error of the mapping.
        let _ = send(&lni.dev, &CqFreeCmd::of(response.cq));
    })?;
    cmdq.fill(block);
    Ok(())
}

/// Released drivers know neither queues in the caller's memory nor the command for them.
fn send_alloc(lni: &Lni, eq: u32, opts: CqAllocOptsBuf) -> Result<CqAllocResp> {
    let resource = if opts.opts.flags & CQ_IS_TX != 0 { Resource::Txqs } else { Resource::Tgqs };
    if opts.buf == 0 && lni.dev.lnis.known() == Some(LniForm::Short) {
        let command = CqAllocCmd::of(lni.id.get(), eq, opts.opts);
        return lni.send(&command, Some(resource));
    }
    let opts = CqAllocOptsBuf { is_host_mem: u8::from(opts.is_host_mem != 0), ..opts };
    let command = CqAllocBufCmd::of(lni.id.get(), eq, opts);
    lni.send(&command, Some(resource))
}

fn map(dev: &Dev, opts: &CqAllocOptsBuf, response: &CqAllocResp) -> Result<Cmdq> {
    let commands = Window::new();
    if opts.buf == 0 {
        commands.map(dev, response.cmds)?;
    }
    let write_pointer = Window::of(dev, response.wp_addr).inspect_err(|_| {
        let _ = commands.unmap();
    })?;
    // This process cannot write to device memory.
    let memory = match opts.buf {
        0 => Memory::of(commands.address()),
        address if opts.is_host_mem != 0 => Memory::at(address),
        _ => Memory::NONE,
    };
    memory.begin_commands();
    let public =
        CmdqPublic::new(response.cq, response.count, write_pointer.address(), memory.pointer());
    Ok(Cmdq {
        dev: Counted::new(dev),
        commands,
        write_pointer,
        number: response.cq,
        tag: Tag::of::<Cmdq>(),
        public: Shared::new(public),
    })
}

#[unsafe(no_mangle)]
extern "C" fn cxil_destroy_cmdq(cmdq: Handle<Cmdq>) -> c_int {
    status(|| {
        cmdq.end(|cmdq| {
            cmdq.write_pointer.unmap()?;
            cmdq.commands.unmap()?;
            send(&cmdq.dev, &CqFreeCmd::of(cmdq.number))
        })
    })
}

#[unsafe(no_mangle)]
extern "C" fn cxil_cmdq_ack_counter(cmdq: Handle<Cmdq>, ack_counter: Out<u32>) -> c_int {
    status(|| {
        let cmdq = cmdq.get()?;
        let ack_counter = ack_counter.required()?;
        ack_counter.set(send(&cmdq.dev, &CqAckCounterCmd::of(cmdq.number))?.ack_counter);
        Ok(())
    })
}
