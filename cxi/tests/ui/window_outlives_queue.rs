//! A mapped window belongs to its queue: it cannot be used when the queue is gone.

use cxi::Lni;
use cxi::lni::TgqOptions;

fn ring(lni: &Lni) -> cxi::Result<()> {
    let window;
    {
        let queue = lni.alloc_tgq(&TgqOptions::new(64))?;
        window = queue.commands()?;
    }
    window.write_u64(0, 1).unwrap();
    Ok(())
}

fn main() {}
