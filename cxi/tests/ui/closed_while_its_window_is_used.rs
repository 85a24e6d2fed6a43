//! A queue cannot be given back while one of its windows is in use.

use cxi::lni::Tgq;

fn close_early(queue: Tgq) -> cxi::Result<()> {
    let pointer = queue.write_pointer()?;
    drop(queue.close());
    pointer.write_u64(0, 1).unwrap();
    Ok(())
}

fn main() {}
