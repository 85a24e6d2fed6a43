# Changes of specification, conversion and accounting that no test notices. Hours.
long_step "mutation" .ci/mutation
