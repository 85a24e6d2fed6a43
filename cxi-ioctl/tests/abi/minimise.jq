# Takes from a recorded interface of a driver release what the test `layouts` needs:
#   jq -cS -f minimise.jq recorded.json > RELEASE.json
{
  release, opcode_max, max_request_bytes,
  hardware_constants: (.hardware_constants | map_values(.value)),
  constants, flag_groups,
  enums: (.enums | del(.cxi_command_opcode) | map_values(.values)),
  opcodes: (.opcodes | map_values(del(.kernel_name, .in_dispatch_table, .handler_also_checks_capability))),
  structs: (.structs | walk(
    if type == "object" then
      (if has("bitfield") then .bitfield |= {bit_in_struct, width} else . end)
      | if (.type | type) == "string" then del(.type) else . end
    else . end))
}
