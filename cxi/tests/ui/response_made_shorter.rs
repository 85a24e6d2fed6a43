//! Nobody can put a buffer into a request that is too short for the response.

use cxi_ioctl::{CharDev, Request, Transport};

fn shorten(device: &CharDev, mut request: Request<'_>) {
    request.response = &mut [];
    let _ = device.submit(request);
}

fn main() {}
