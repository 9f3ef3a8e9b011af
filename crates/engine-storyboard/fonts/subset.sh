#!/usr/bin/env bash
# Makes the fonts of this folder from the fonts of Debian 12 and of one npm package, in ./made: needs
# apt-get, dpkg, npm and python3 with venv. The result is the same, byte for byte, on every machine.
set -euo pipefail
cd "$(dirname "$0")"
readonly MADE=$PWD/made
readonly FONTTOOLS=4.68.0
mkdir -p "$MADE"
cd "$MADE"

# The exact inputs.
apt-get download fonts-noto-core=20201225-1 fonts-noto-extra=20201225-1 \
  fonts-noto-cjk-extra=1:20220127+repack1-1
npm pack --silent @fontsource/noto-emoji@5.3.2
sha256sum --check ../inputs.sha256
for package in ./*.deb; do dpkg --extract "$package" root; done
tar --extract --gzip --file fontsource-noto-emoji-5.3.2.tgz
python3 -m venv venv
venv/bin/pip install --quiet "fonttools==$FONTTOOLS" brotli==1.2.1

readonly TTF=root/usr/share/fonts/truetype/noto
readonly CJK=root/usr/share/fonts/opentype/noto/NotoSansCJK-Medium.ttc
# A fixed time in place of the time of the run.
export SOURCE_DATE_EPOCH=1609459200

# subset INPUT OUTPUT ARGUMENT...: keeps shaping rules, drops hints and vertical metrics.
subset() {
  local input=$1 output=$2
  shift 2
  venv/bin/pyftsubset "$input" --output-file="../$output" --no-hinting --notdef-outline \
    --drop-tables+=vhea,vmtx,VORG,BASE,STAT,gasp,MVAR --name-IDs=0,1,2,4,5,6,13,14 --no-recalc-timestamp "$@"
}

# Han characters of three national sets: GB 2312 (simplified), Big5's first level (traditional), JIS X 0208.
python3 - >han.txt <<'PYTHON'
def characters(codec, leads, trails):
    for lead in leads:
        for trail in trails:
            try:
                yield bytes([lead, trail]).decode(codec)
            except UnicodeDecodeError:
                pass

trails = range(0xA1, 0xFF)
han = set(characters("gb2312", range(0xB0, 0xF8), trails))
han |= set(characters("big5", range(0xA4, 0xC7), [*range(0x40, 0x7F), *trails]))
han |= set(characters("euc_jp", range(0xB0, 0xF5), trails))
print("".join(sorted(one for one in han if len(one) == 1)))
PYTHON

# Latin with Vietnamese, Greek, Cyrillic and their punctuation.
subset $TTF/NotoSans-Medium.ttf NotoSans.ttf --layout-features='*' --layout-features-=smcp,c2sc,subs,sups,sinf,ordn,frac,numr,dnom,aalt,pnum,onum,lnum,tnum,zero \
  --unicodes=U+0020-007E,U+00A0-052F,U+1AB0-1AC0,U+1C80-1C88,U+1D00-1DFF,U+1E00-1FFF,U+2000-206F,U+2070-209F,U+20A0-20F0,U+2100-218B,U+2190-2199,U+2212,U+2C60-2C7F,U+2DE0-2E4F,U+A640-A69F,U+A700-A7FF,U+AB30-AB6B,U+FB00-FB06,U+FE00-FE2F,U+FFFD
for script in Arabic Hebrew Devanagari Thai; do
  subset "$TTF/NotoSans$script-Medium.ttf" "NotoSans$script.ttf" --layout-features='*' --unicodes='*'
done
# Simplified Chinese shapes; Japanese ones by language (locl). All Hangul syllables, both kana, symbols.
subset $CJK NotoSansCJK.otf --font-number=2 --layout-features=locl,ccmp,ljmo,vjmo,tjmo \
  --layout-scripts=DFLT.dflt,hani.dflt,hani.JAN,kana.dflt,kana.JAN,hang.dflt --text-file=han.txt \
  --unicodes=U+0020-007E,U+2000-206F,U+20A0-20BF,U+2100-23FF,U+2460-27BF,U+3000-30FF,U+3131-318E,U+31F0-31FF,U+3200-33FF,U+1100-1112,U+1161-1175,U+11A8-11C2,U+AC00-D7A3,U+FE30-FE4F,U+FF00-FFEF
subset $TTF/NotoSansMath-Regular.ttf NotoSansMath.ttf --layout-features='' --unicodes=U+2070-209F,U+2100-22FF,U+27C0-27FF,U+2900-29FF,U+2A00-2AFF
subset $TTF/NotoSansSymbols2-Regular.ttf NotoSansSymbols2.ttf --layout-features='' \
  --unicodes=U+2300-23FF,U+25A0-27BF,U+2800-28FF,U+2B00-2BFF
# One colour; sequences (families, flags) are set as one.
subset package/files/noto-emoji-emoji-500-normal.woff2 NotoEmoji.ttf --layout-features='*' --unicodes='*' --flavor=
