# The Debian and RPM packages, of the profile that builds fastest.

if ! cargo_has deb; then
    skip "packages" "cargo-deb is not installed (cargo install --locked cargo-deb)"
elif ! command -v dpkg-shlibdeps > /dev/null; then
    skip "packages" "needs Debian's dpkg-dev"
elif ! has_cc; then
    skip "packages" "there is no C compiler"
else
    long_step "packages" .ci/packages dev
fi

# The image of docs/MPI.md, in which a launcher starts programs on two nodes.
image() {
    local tag=cxi-mpi-test base=docker.io/library/debian:trixie-slim
    if ! timeout 300 podman pull --quiet "$base" > /dev/null; then
        skip "image" "podman cannot pull $base"
        return "$SKIPPED"
    fi
    podman build --quiet --tag "$tag" --file docs/mpi/Containerfile . &&
        [ "$(podman run --rm --privileged "$tag" cxi-mock mpi -- mpiexec -n 2 hostname | sort | xargs)" = "n1 n2" ]
}

if ! command -v podman > /dev/null; then
    skip "image" "podman is not installed"
else
    long_step "image" image
fi
