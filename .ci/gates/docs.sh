# Documentation without warnings: of the workspace as it is built; in long runs also of the libraries
# with no feature, and with all of them as docs.rs builds it. And the book of docs/.

docs() { RUSTDOCFLAGS="-D warnings" cargo doc --workspace --no-deps --quiet; }

docs_of_libraries() {
    RUSTDOCFLAGS="-D warnings $1" cargo doc --no-deps --quiet --target-dir target/ci/docs "${packages_libraries[@]}" "${@:2}"
}

# docs.rs has a nightly toolchain; RUSTC_BOOTSTRAP gives its features to any.
docs_rs() {
    RUSTC_BOOTSTRAP=1 docs_of_libraries "--cfg docsrs" "${most_features[@]}"
}

# The guide and the reference as a book. What is not in it is linked in the repository.
book() {
    local copy=target/ci/book repository=https://github.com/cxi-rs/cxi/blob/main
    rm -rf "$copy" && mkdir -p "$copy" && cp -r docs/. "$copy" || return 1
    sed -i "s|](\.\./\.\./|]($repository/|g" "$copy"/*/*.md
    sed -i "s|](\.\./|]($repository/|g" "$copy"/*.md
    mdbook build --dest-dir "$PWD/target/book" "$copy"
}

has_ended "tools for gates"
step "docs" docs
if command -v mdbook > /dev/null; then
    step "book" book
else
    skip "book" "mdbook is not installed (cargo install --locked mdbook)"
fi
long_step "docs with no feature" docs_of_libraries "" --no-default-features
long_step "docs as on docs.rs" docs_rs
discard target/ci/docs
