# Draws the last operations of a timeline as SVG: a row for each track, a bar for each operation, an
# arrow to where it arrived, a legend, and ticks at round times.
#
#     jq -r --argjson last 40 -f docs/mpi/timeline.jq job.json > docs/mpi/timeline.svg

def text: gsub("&"; "&amp;") | gsub("<"; "&lt;");
def rounded: . * 10 | round / 10;
# The round number that is not smaller: 1, 2 or 5 with zeros.
def tick: . as $least | pow(10; log10 | floor) as $power | first((1, 2, 5, 10) * $power | select(. >= $least));
def colors: {put: "#0969da", get: "#bf8700", failed: "#cf222e", arrival: "#8c959f"};

(map(select(.ph == "M" and .name == "process_name") | {key: "\(.pid)", value: .args.name}) | from_entries) as $nics
| (map(select(.args.operation)) | sort_by(.ts) | .[-$last:]) as $shown
| ($shown | map(.ts) | min) as $since
| ($shown | map(.ts + .dur) | max) as $until
| map(select(.ph == "X" and .ts >= $since)) as $bars
| (map(select(.ph == "M" and .name == "thread_name" and (.tid | IN($bars[].tid)))) | sort_by(.pid, .tid)) as $rows
| ($rows | to_entries | map({key: "\(.value.tid)", value: (.key * 26 + 40)}) | from_entries) as $line
| def x: (. - $since) / ($until - $since) * 766 + 264 | rounded;
  def y: $line["\(.tid)"];
  (map(select(.ph == "f") | {key: "\(.id)", value: .}) | from_entries) as $arrivals
| ($rows | length * 26 + 76) as $height
| (($until - $since) / 8 | tick) as $tick
| (if $tick >= 1000 then {name: "ms", length: 1000} else {name: "µs", length: 1} end) as $unit
| "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"1060\" height=\"\($height)\" viewBox=\"0 0 1060 \($height)\" role=\"img\">",
  "<style>text { font: 12px sans-serif } .arrow { stroke: #57606a; marker-end: url(#tip) }</style>",
  "<marker id=\"tip\" viewBox=\"0 0 6 6\" refX=\"6\" refY=\"3\" markerWidth=\"6\" markerHeight=\"6\" orient=\"auto\"><path d=\"M0 0 6 3 0 6z\" fill=\"#57606a\"/></marker>",
  "<rect width=\"100%\" height=\"100%\" fill=\"white\"/>",
  ([["put", "put or message"], ["get", "get"], ["arrival", "arrival"], ["failed", "failed operation"]] | to_entries[]
       | "<rect x=\"\(.key * 150 + 264)\" y=\"10\" width=\"14\" height=\"14\" fill=\"\(colors[.value[0]])\"/>",
         "<text x=\"\(.key * 150 + 284)\" y=\"21\">\(.value[1])</text>"),
  (range(0; ($until - $since) / $tick + 0.001) | . * $tick + $since
       | "<path d=\"M\(x) 36V\($height - 28)\" stroke=\"#eaeef2\"/>",
         "<text x=\"\(x)\" y=\"\($height - 10)\" text-anchor=\"middle\">\((. - $since) / $unit.length | rounded) \($unit.name)</text>"),
  ($rows[] | "<text x=\"8\" y=\"\(y + 14)\">\("\($nics["\(.pid)"]): \(.args.name | sub("^PID 511$"; "the NIC itself (PID 511)"))" | text)</text>",
             "<path d=\"M264 \(y + 20)H1030\" stroke=\"#d0d7de\"/>"),
  ($bars[] | "<rect x=\"\(.ts | x)\" y=\"\(y + 4)\" width=\"\([(.ts + .dur | x) - (.ts | x), 1.5] | max | rounded)\" height=\"16\" fill=\"\(
                 if .args.result == null then colors.arrival elif .args.result != "OK" then colors.failed
                 elif .args.operation == "GET" then colors.get else colors.put end)\"><title>\(.name | text)</title></rect>"),
  (.[] | select(.ph == "s" and .ts >= $since) | $arrivals["\(.id)"] as $to | select($to)
       | "<path class=\"arrow\" d=\"M\(.ts | x) \(y + 12) \($to.ts | x) \($to | y + 12)\"/>"),
  "</svg>"
