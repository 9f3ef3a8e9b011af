#!/bin/sh
# Renders the pictures of docs/storyboard.md and of the README anew, from the lists beside this script. Needs ffmpeg.
set -eu
cd "$(dirname "$0")/../.."
sheets=$(mktemp -d)
trap 'rm -rf "$sheets"' EXIT
cargo build --release -p kinora-engine-storyboard --example contact_sheet --example contact_sheets --example noun_sheet
example() {
    sheet=$1
    shift
    cargo run --quiet --release -p kinora-engine-storyboard --example "$sheet" -- "$@"
}

# Quality 6 of 2 to 31, as ffmpeg counts: small, and clean at the edges of letters.
jpeg() {
    ffmpeg -loglevel error -y -i "$1" -q:v 6 "docs/$2.jpg"
}

example noun_sheet --out "$sheets/nouns.png"
jpeg "$sheets/nouns.png" storyboard/nouns
for list in prompts actions camera edits crowds; do
    example contact_sheets --plain true --prompts "docs/storyboard/$list.tsv" --out "$sheets/$list" \
        --seconds 3 --frames 2 --rows 5 --columns 2 >/dev/null
    for page in "$sheets/$list"/sheet-*.png; do
        jpeg "$page" "storyboard/$list-$(basename "$page" .png | sed 's/sheet-//')"
    done
done

size=1280x720

# The middle frame of four seconds at $size, WIDTH wide: still NAME WIDTH SEED PROMPT [OPTION...].
still() {
    name=$1 width=$2 seed=$3 prompt=$4
    shift 4
    example contact_sheet --size "$size" --seconds 4 --count 3 --columns 1 --reduce 1 --seed "$seed" \
        --prompt "$prompt" --out "$sheets/frames.png" "$@" >/dev/null
    ffmpeg -loglevel error -y -i "$sheets/frames.png" -vf "crop=iw:ih/3:0:ih/3,scale=$width:-2:flags=area" \
        "$sheets/$name.png"
}

# Lays stills side by side, COLUMNS in a row, 4 pixels apart: tile NAME COLUMNSxROWS STILL...
tile() {
    name=$1 layout=$2
    shift 2
    nth=0
    for one in "$@"; do
        nth=$((nth + 1))
        cp "$sheets/$one.png" "$sheets/tile-$nth.png"
    done
    ffmpeg -loglevel error -y -start_number 1 -i "$sheets/tile-%d.png" -frames:v 1 -vf "tile=$layout:padding=4" \
        "$sheets/$name.png"
    rm "$sheets"/tile-*.png
    jpeg "$sheets/$name.png" "pictures/$name"
}

still one 400 7 "Golden hour at the seaside, a lighthouse on the cliff, gulls circling"
still two 400 7 "A cat sits on the windowsill while snow falls outside"
still three 400 7 "Three camels cross the desert at noon"
still four 400 7 "A blue whale glides through a deep underwater canyon"
still five 400 7 "海边的日出，一艘红色的小船慢慢驶过"
still six 400 7 "A rocket rises into space past the moon"
tile storyboard 3x2 one two three four five six

source="A red sailboat crosses a calm bay on a summer noon, hills behind"
still one 480 11 "$source"
still two 480 11 "The same at night under the moon, snow falls" --made-from "$source" --strength 1
still three 480 11 "Replace the boat with two swans, at sunset" --made-from "$source" --strength 1
tile edit 3x1 one two three

size=1920x1080
still one 600 4 "A lighthouse in a storm, waves crash" --draft true
still two 600 4 "A lighthouse in a storm, waves crash"
tile draft 2x1 one two
du -ch docs/storyboard/*.jpg docs/pictures/*.jpg | tail -n 1
