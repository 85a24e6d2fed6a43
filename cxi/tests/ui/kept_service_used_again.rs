//! A scoped service that is kept is no longer scoped: it cannot be destroyed through its guard.

use cxi::ScopedService;

fn keep_and_destroy(service: ScopedService) {
    let _id = service.keep();
    drop(service.destroy());
}

fn main() {}
