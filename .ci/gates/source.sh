# The text of the sources, before anything runs.

# Rust code in doc comments too. That option is unstable; the variable gives it to any rustfmt.
format() {
    CFG_RELEASE_CHANNEL=nightly cargo fmt --all --check -- --config format_code_in_doc_comments=true
}

# Rust code in documents, each as if it were the doc comment of a crate.
format_of_documents() {
    local document texts=target/ci/documents
    rm -rf "$texts"
    for document in $(git grep -l '^```rust' -- '*.md'); do
        mkdir -p "$texts/$(dirname "$document")" || return 1
        sed 's|^|//! |; s|^//! $|//!|' "$document" > "$texts/$document.rs"
    done
    find "$texts" -name '*.rs' -print0 \
        | CFG_RELEASE_CHANNEL=nightly xargs -0 rustfmt --check --edition 2024 --config-path . --config format_code_in_doc_comments=true
}

shell_scripts() {
    local script
    for script in .ci/run .ci/as .ci/counting .ci/packages .ci/rpm .ci/wheels .ci/mutation .ci/tools .ci/lib.sh .ci/gates/*.sh cxi/cli/integration/*/*.sh cxi/cli/packages/* tests/slurm/cluster \
        docs/record cxi/capi/tests/pack-vectors cxi/capi/tests/cases/tree.sh \
        tests/tests/fabric_manager/certificates/make; do
        bash -n "$script" || return 1
    done
}

# docs/DESIGN.md names every library source with unsafe code.
unsafe_files() {
    local file
    for file in $(git grep -lE '(allow\(|^    )unsafe_code' -- '*/src/*.rs'); do
        # Tests inside of a source are not the library's.
        sed '/^#\[cfg(test)\]/,$d' "$file" | grep -qE '(allow\(|^    )unsafe_code' || continue
        grep -qF "\`$file\`" docs/DESIGN.md || { echo "$file: has unsafe code, and docs/DESIGN.md does not name it"; return 1; }
    done
}

# Documents name files that exist, from the root or from their own directory.
named_files() {
    local document file found=0
    while IFS=: read -r document file; do
        [ -e "$file" ] || [ -e "$(dirname "$document")/$file" ] || { echo "$document: there is no $file"; found=1; }
    done < <(git grep -oE '`[a-zA-Z.][A-Za-z0-9_./-]*/[A-Za-z0-9_.-]+\.(rs|md|toml|txt|sh|xz|map|c)`' -- '*.md' | tr -d '`' | sort -u)
    return "$found"
}

# Each promise of SECURITY.md names a file, and tests that exist.
named_tests() {
    local name found=0
    if grep -E '^\| ' SECURITY.md | grep -vE '^\| (promised|---) ' | grep -vE '\|[^|]*`[^`]+/[^`]+\.rs`[^|]*\|$'; then
        echo "SECURITY.md: no file with tests"
        found=1
    fi
    for name in $(grep -oE '`[a-z0-9]+(_[a-z0-9]+){2,}`' SECURITY.md | tr -d '`' | sort -u); do
        git grep -qE "fn $name\(" -- '*.rs' || { echo "SECURITY.md: there is no test $name"; found=1; }
    done
    return "$found"
}

# What names the version of the workspace outside of cargo.
one_version() {
    local version
    version=$(sed -n '/^\[workspace.package\]/,/^$/s/^version = "\(.*\)"$/\1/p' Cargo.toml)
    grep -qxF "  version: \"$version\"" conda/recipe.yaml || { echo "conda/recipe.yaml: expected version $version"; return 1; }
}

# An example works when it is pasted into a `main() -> Result<(), Box<dyn Error>>`, as most are.
errors_of_examples() {
    ! git grep -nE '^[[:space:]]*//[/!] (# )?Ok::<' -- '*.rs' | grep -v 'Ok::<_, Box<dyn std::error::Error>>(())'
}

# A doc comment begins with the thing that it describes, as in std: "Number of LNIs", "Returns the
# services". A question names nothing.
nouns_of_comments() {
    local questions
    questions=$(git grep -nE '^[[:space:]]*//[/!]( |$)' -- '*.rs' | awk -F: '
        {
            kind = $0; sub(/^[^:]*:[^:]*:[[:space:]]*/, "", kind)
            text = substr(kind, 5); kind = substr(kind, 1, 3)
            continues = ($1 == file && $2 == line + 1 && kind == last && before != "")
            if (!continues && text ~ /^(What|Whether|How|Where|Why|Which|Who|Whose)([ .,]|$)/) print
            file = $1; line = $2; last = kind; before = text
        }')
    [ -z "$questions" ] || { echo "$questions"; echo "expected a noun or a verb first, such as \"Number of LNIs\""; return 1; }
}

step "format" format
step "format of documents" format_of_documents
# The benchmark of instructions is no default target, as it takes a runner to run.
step "lints" cargo clippy --workspace --all-targets --features cxi-benches/instructions --quiet -- -D warnings
step "scripts" shell_scripts
step "errors of examples" errors_of_examples
step "one version" one_version
step "doc comments name a thing" nouns_of_comments
step "files that documents name exist" named_files
step "tests that SECURITY.md names exist" named_tests
step "unsafe code is where the design says" unsafe_files
