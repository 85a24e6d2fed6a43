# The kernels of Debian's releases, from the oldest to the newest that README.md promises a node for.

kernels() { .ci/kernels; }

missing=
for program in qemu-system-x86_64 busybox cpio dpkg-deb; do
    command -v $program > /dev/null || missing="${missing:+$missing, }$program"
done
has_target x86_64-unknown-linux-musl || missing="${missing:+$missing, }the target x86_64-unknown-linux-musl"
if [ -n "$missing" ]; then
    skip "kernels" "not installed: $missing"
else
    long_step "kernels" kernels
fi
discard target/kernels target/x86_64-unknown-linux-musl
