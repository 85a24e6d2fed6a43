//! Open files: what closing one releases, whether its process meant to or died.

use super::{Model, lowest_free};

impl Model {
    /// Files are numbered, lowest free first; number 1 is the file that looks on.
    pub(super) fn open_file(&mut self, file: usize) {
        let taken = self.open.into_iter().flatten().chain([1]);
        self.open[file] = Some(lowest_free(1, taken));
    }

    pub(super) fn close_file(&mut self, file: usize) {
        self.mappings.retain(|_, mapped| mapped.file != file);
        for pte in keys(&self.ptes, |pte| pte.file == file) {
            self.drop_pte(pte);
        }
        for queue in keys(&self.queues, |queue| queue.file == file) {
            self.drop_queue(queue);
        }
        for eq in keys(&self.eqs, |eq| eq.file == file) {
            self.drop_eq(eq);
        }
        self.mds.retain(|_, md| md.file != file);
        self.waits.retain(|(owner, _), _| *owner != file);
        for domain in keys(&self.domains, |domain| domain.file == file) {
            self.drop_domain(domain);
        }
        for ct in keys(&self.cts, |(owner, _)| *owner == file) {
            self.drop_ct(ct);
        }
        let cps = self.cps.keys().filter(|(owner, _)| *owner == file);
        for cp in cps.copied().collect::<Vec<_>>() {
            self.drop_cp(cp);
        }
        for lni in keys(&self.lnis, |lni| lni.file == Some(file)) {
            self.end_lni(lni);
        }
        self.open[file] = None;
    }
}

fn keys<V>(map: &std::collections::BTreeMap<u32, V>, wanted: impl Fn(&V) -> bool) -> Vec<u32> {
    let found = map.iter().filter(|(_, value)| wanted(value));
    found.map(|(key, _)| *key).collect()
}
