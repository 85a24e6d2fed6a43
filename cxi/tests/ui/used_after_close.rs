//! A closed LNI is no more: nothing can be allocated from it.

use cxi::Lni;

fn close_first(lni: Lni) {
    lni.close().unwrap();
    let _counter = lni.alloc_ct();
}

fn main() {}
