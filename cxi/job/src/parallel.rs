//! The same operation on several NICs in parallel.

use std::iter;
use std::panic::resume_unwind;
use std::thread::Builder;

/// Runs `act` on every item, each in a separate thread except for the first, which runs in the
/// caller's. Returns the results in the items' order.
///
/// If the system provides no more threads, the rest runs sequentially.
pub(super) fn each<T, R>(items: &[T], act: impl Fn(&T) -> R + Sync) -> Vec<R>
where
    T: Sync,
    R: Send,
{
    let Some((first, others)) = items.split_first() else { return Vec::new() };
    if others.is_empty() {
        return vec![act(first)];
    }
    let act = &act;
    std::thread::scope(|scope| {
        let started: Vec<_> = others
            .iter()
            .map(|item| {
                let thread = Builder::new().name("cxi-job".to_owned());
                match thread.spawn_scoped(scope, move || act(item)) {
                    Ok(handle) => Ok(handle),
                    Err(_) => Err(act(item)),
                }
            })
            .collect();
        let finish = |started| match started {
            Ok(handle) => std::thread::ScopedJoinHandle::join(handle)
                .unwrap_or_else(|panic| resume_unwind(panic)),
            Err(result) => result,
        };
        iter::once(act(first)).chain(started.into_iter().map(finish)).collect()
    })
}
