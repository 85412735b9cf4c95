"""The style sheet of the page. Colours are distinguishable by the colour-blind (after Okabe and Ito), and always
doubled by a word or form.
"""

from __future__ import annotations

_COLOURS = """
:root {
  color-scheme: light dark;
  --ground: #fdfdfb; --raised: #f4f4ef; --ink: #1d2126; --soft: #59616b; --rule: #d9d9d0; --link: #0b5a99;
  --readable: #8fcbb6; --readable-edge: #1b7f63; --blocked: #fbe3b4; --blocked-edge: #a86a00;
  --ledger: #e4e6e8; --ledger-odd: #cfd3d7; --own: #0072b2; --stretch: #d8e8f3; --alarm: #a83c00;
  --alarm-ground: #fbe9df; --own-alarm: #d55e00; --done: #9aa3ad; --visible: #b9dcf2; --visible-edge: #2b7fb5;
  --flight: #f0dcea; --flight-edge: #a3507f; --calm: #1b6e55; --bound: #1d2126;
}
@media (prefers-color-scheme: dark) {
  :root {
    --ground: #15181c; --raised: #1e2227; --ink: #e4e6e8; --soft: #a3abb5; --rule: #363c44; --link: #86c5f3;
    --readable: #1f6450; --readable-edge: #5fc3a3; --blocked: #4a3608; --blocked-edge: #f0b429;
    --ledger: #30363d; --ledger-odd: #414952; --own: #6bb5e8; --stretch: #1d3344; --alarm: #ff9a5c;
    --alarm-ground: #3a2317; --own-alarm: #ff8a3d; --done: #77818c; --visible: #1d4a66; --visible-edge: #62b3e4;
    --flight: #4a2a3e; --flight-edge: #e193c0; --calm: #6fd0b0; --bound: #e4e6e8;
  }
}
@media print {
  :root {
    --ground: #fff; --raised: #fff; --ink: #000; --soft: #444; --rule: #bbb; --link: #000; --stretch: #e4eef5;
  }
}
"""

_TEXT = """
* { box-sizing: border-box; }
html { font: 16px/1.5 system-ui, -apple-system, "Segoe UI", Roboto, "DejaVu Sans", sans-serif; }
body { margin: 0 auto; padding: 1rem 1rem 2rem; max-width: 78rem; background: var(--ground); color: var(--ink); }
h1 { margin: 0 0 .25rem; font-size: 1.75rem; line-height: 1.25; overflow-wrap: anywhere; }
h2 { margin: 1.25rem 0 .5rem; font-size: 1.125rem; }
h3 { margin: 0 0 .25rem; font-size: 1rem; line-height: 1.4; overflow-wrap: anywhere; }
p { margin: .25rem 0 .75rem; max-width: 75ch; overflow-wrap: anywhere; }
a { color: var(--link); }
code { font: .9em/1.4 ui-monospace, "SF Mono", Menlo, Consolas, "DejaVu Sans Mono", monospace; }
code, bdi { overflow-wrap: anywhere; }
:focus-visible { outline: 2px solid var(--link); outline-offset: 2px; }
.legend { display: flex; flex-wrap: wrap; gap: .25rem 1.25rem; margin: 1rem 0; padding: 0; list-style: none; }
footer, .more, .facts, .gist, figcaption { color: var(--soft); font-size: .875rem; }
footer { margin-top: 2rem; border-top: 1px solid var(--rule); padding-top: .75rem; }
dl { margin: 0 0 1rem; display: grid; gap: .1rem; }
dl > div { display: grid; grid-template-columns: 6.5rem 1fr; gap: .75rem; }
dt { color: var(--soft); }
dd { margin: 0; overflow-wrap: anywhere; }
.tiles { display: flex; flex-wrap: wrap; gap: 0 1.25rem; margin: 0 0 .75rem; font-size: .875rem; }
.tiles > div { display: flex; flex-direction: row-reverse; gap: .35rem; }
.tiles dd { font-weight: 600; font-variant-numeric: tabular-nums; }
.word { font-weight: 600; }
.word.alarm, .word.critical, .word.warning { color: var(--alarm); }
.word.calm { color: var(--calm); }
.verdict { display: inline-block; padding: .1rem .6rem; border: 1.5px solid; border-radius: 1rem; font-size: .9375rem;
  font-weight: 600; vertical-align: .2em; color: var(--alarm); }
.verdict.ok { color: var(--calm); }
.finding { margin: 0 0 .75rem; padding: .75rem 1rem; border: 1px solid var(--rule);
  border-left: 5px solid var(--own-alarm); border-radius: 6px; background: var(--raised); }
.finding.critical { border-left-style: double; border-left-width: 9px; background: var(--alarm-ground); }
.finding p, .finding figure, .advice p, .facts { max-width: none; }
.finding p:last-child, .advice p:last-child { margin-bottom: 0; }
.command code { display: inline-block; max-width: 100%; padding: .15rem .4rem; border: 1px solid var(--rule);
  border-radius: 4px; background: var(--ground); vertical-align: middle; user-select: all; }
.finding.info { border-left-color: var(--done); }
.effects { font-weight: 400; }
.fine { color: var(--calm); font-weight: 600; }
article { margin: 0 0 1.75rem; }
details { margin: 0 0 .75rem; }
summary { cursor: pointer; padding: .3rem 0; overflow-wrap: anywhere; }
summary h2 { display: inline; margin: 0; font-size: 1rem; }
.part { margin: 0; border-top: 1px solid var(--rule); padding: .35rem 0; }
.part[open] { padding-bottom: .75rem; }
.evidence { margin: 0 0 .5rem; font-size: .9375rem; }
details > dl { grid-template-columns: repeat(auto-fit, minmax(min(100%, 26rem), 1fr)); column-gap: 2rem; }
.advice { margin: .25rem 0 1rem; padding: .35rem 0; border-radius: 6px; background: var(--raised); }
"""

_TABLES = """
.scroll { overflow-x: auto; margin: 0 0 1rem; }
table { border-collapse: collapse; width: 100%; font-size: .8125rem; font-variant-numeric: tabular-nums; }
caption { text-align: left; font-weight: 600; padding: .25rem 0; }
.unseen { position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%); }
th { text-align: left; font-size: .6875rem; font-weight: 600; line-height: 1.3;
  color: var(--soft); vertical-align: bottom; }
th, td { padding: .3rem .65rem .3rem 0; border-bottom: 1px solid var(--rule); vertical-align: top; }
td, td code { white-space: nowrap; }
td.long { min-width: 15rem; }
td.long, td.long * { white-space: normal; overflow-wrap: anywhere; }
.number { text-align: right; }
.number + td:not(.number), .number + th:not(.number) { padding-left: .75rem; }
.scroll:not(.cards) table { width: auto; }
@media screen and (max-width: 860px) {
  .cards { overflow: visible; }
  .cards thead, .cards td.none { display: none; }
  .cards table, .cards tbody, .cards caption, .cards tr { display: block; }
  .cards tr { margin: 0 0 .5rem; padding: .4rem .75rem; border: 1px solid var(--rule); border-radius: 6px; }
  .cards td { display: grid; grid-template-columns: 8.5rem 1fr; gap: .75rem; padding: .1rem 0; border: 0; }
  .cards td::before { content: attr(data-label); color: var(--soft); font-size: .75rem; line-height: 1.75; }
  .cards td > *, td.long { min-width: 0; }
  .cards td, .cards td.number { text-align: left; }
  .cards td:first-child { font-weight: 600; }
  td, td code { white-space: normal; }
}
"""

_DRAWINGS = """
figure { margin: .5rem 0 .75rem; }
figcaption { margin-top: .35rem; overflow-wrap: anywhere; }
figure .topic { margin: 0 0 .25rem; }
svg { display: block; }
.wide { width: 100%; }
.narrow { display: none; width: 100%; max-width: 480px; }
.legend { font-size: .8125rem; color: var(--soft); gap: .25rem 1rem; }
.legend li { display: flex; align-items: center; gap: .4rem; }
.legend svg { flex: none; }
svg text { font: 12px ui-monospace, "SF Mono", Menlo, Consolas, "DejaVu Sans Mono", "Liberation Mono", monospace;
  fill: var(--ink); unicode-bidi: isolate; white-space: pre; }
svg text.name { font-weight: 600; }
svg text.soft, svg text.state { fill: var(--soft); }
svg text.alarm { fill: var(--alarm); font-weight: 600; }
.ledger { fill: var(--ledger); } .ledger.odd { fill: var(--ledger-odd); }
.readable { fill: var(--readable); stroke: var(--readable-edge); stroke-width: 1; }
rect.blocked { fill: var(--blocked); } line.blocked { stroke: var(--blocked-edge); }
line.stripes { stroke-dasharray: 2 4; } line.flight.stripes { stroke-dasharray: 6 2; }
.stretch { fill: var(--stretch); }
.extent { fill: var(--own); }
.own { fill: var(--own); } .own.alarming { fill: var(--own-alarm); stroke: var(--ink); stroke-width: 1; }
.acknowledged { fill: var(--done); }
.visible { fill: var(--visible); stroke: var(--visible-edge); stroke-width: 1; }
.pending { fill: var(--flight-edge); stroke: var(--flight-edge); stroke-width: 1; }
rect.delayed { fill: var(--visible); } line.delayed { stroke: var(--visible-edge); }
line.delayed.stripes { stroke-dasharray: 1 5; }
rect.flight { fill: var(--flight); } line.flight { stroke: var(--flight-edge); }
.cursor { fill: var(--ink); } .cursor.diamond { fill: var(--ground); stroke: var(--ink); stroke-width: 1.5; }
.bound { stroke: var(--bound); stroke-width: 1.5; stroke-dasharray: 5 3; }
.break { fill: var(--ground); stroke: var(--soft); stroke-width: 1; }
@media screen and (max-width: 860px) { .wide { display: none; } .narrow { display: block; } }
"""

_PAPER = """
@media print {
  html { font-size: 10pt; }
  body { max-width: none; padding: 0; }
  details::details-content { content-visibility: visible; block-size: auto; }
  figure, .finding, tr { break-inside: avoid; }
  .scroll { overflow: visible; }
  table { font-size: 6.5pt; } th { font-size: 5.5pt; } th, td { padding-right: .5em; } td.long { min-width: 9em; }
  h2, h3, caption { break-after: avoid; }
  * { print-color-adjust: exact; -webkit-print-color-adjust: exact; }
}
"""

STYLE = _COLOURS + _TEXT + _TABLES + _DRAWINGS + _PAPER
