# The kernels of Debian's releases, from the oldest to the newest that README.md promises a node for.

kernels() { .ci/kernels; }

missing=$(missing x86_64-unknown-linux-musl qemu-system-x86_64 busybox cpio dpkg-deb)
if [ -n "$missing" ]; then
    skip "kernels" "not installed: $missing"
else
    long_step "kernels" kernels
fi
discard target/kernels target/x86_64-unknown-linux-musl
