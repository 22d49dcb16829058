import type { Steering } from '../cadence/simulate.ts';
import type { Step } from './settling.ts';

/** What is drawn: a run, by budget the runs that always had it, the steps, and when the run ended. */
export type Drawing = {
  steerings: readonly Steering[];
  controls: ReadonlyMap<number, readonly Steering[]>;
  steps: readonly Step[];
  end: number;
};

/** A panel: where it stands, and what its upper and lower edge mean. */
type Panel = { top: number; height: number; scale: (value: number) => number };

const WIDTH = 960;
const HEIGHT = 560;
const LEFT = 64;
const RIGHT = 20;
/** Drawn from here on: before, the price begins. Seconds. */
const BEGIN = 240;

const STYLE = `
    text { font: 12px system-ui, sans-serif; fill: #3b4252; }
    .title { font-size: 15px; font-weight: 600; }
    .ground { fill: #ffffff; } .grid { stroke: #d8dee9; } .frame { stroke: #8a94a6; fill: none; }
    .step { stroke: #8a94a6; stroke-dasharray: 2 3; } .burst { fill: #ebcb8b; opacity: 0.35; }
    .run { stroke: #1f6feb; } .control { stroke: #c2410c; } .wait { stroke: #1f6feb; }
    .line { fill: none; stroke-width: 1.4; stroke-linejoin: round; } .control.line { stroke-width: 1.1; opacity: 0.85; }
    @media (prefers-color-scheme: dark) {
      text { fill: #c9d1d9; } .ground { fill: #0d1117; } .grid { stroke: #21262d; }
      .frame, .step { stroke: #6e7681; } .burst { opacity: 0.2; }
      .run, .wait { stroke: #58a6ff; } .control { stroke: #f0883e; }
    }`;

/** Draws the price and the wait for a turn over time as an SVG that reads on light and on dark ground. */
export function drawSteps({ steerings, controls, steps, end }: Drawing): string {
  const x = (at: number): number => LEFT + ((at - BEGIN) / (end - BEGIN)) * (WIDTH - LEFT - RIGHT);
  const shown = steerings.filter(({ at }) => at >= BEGIN);
  const prices = shown.map(({ price }) => Math.log10(price));
  const [least, most] = [Math.floor(Math.min(...prices)), Math.ceil(Math.max(...prices))];
  const price: Panel = {
    top: 84,
    height: 260,
    scale: (value) => (Math.log10(value) - least) / (most - least),
  };
  const longest = Math.max(5, Math.ceil(Math.max(...shown.map(({ behindSeconds }) => behindSeconds))));
  const wait: Panel = { top: 392, height: 110, scale: (value) => value / longest };
  const decades = Array.from({ length: most - least + 1 }, (_, index) => 10 ** (least + index));
  const tenths = decades.slice(0, -1).flatMap((decade) => [2, 5].map((factor) => factor * decade));
  const waits = Array.from({ length: longest + 1 }, (_, seconds) => seconds).filter(
    (seconds) => seconds % Math.ceil(longest / 5) === 0,
  );
  const control = steps.map(({ at, until, budgetPerSecond }) =>
    line('control', (controls.get(budgetPerSecond) ?? []).slice(at, until), {
      x,
      y: ({ price: value }) => yOf(price, value),
    }),
  );
  const [burst] = steps;
  const parts = [
    `<rect class="ground" width="${WIDTH}" height="${HEIGHT}"/>`,
    `<text class="title" x="${LEFT}" y="24">What steps in load and budget do to the price of a request</text>`,
    legend(),
    ...[price, wait].map(({ top, height }) =>
      burst === undefined
        ? ''
        : `<rect class="burst" x="${num(x(burst.at))}" y="${top}" width="${num(x(burst.until) - x(burst.at))}" height="${height}"/>`,
    ),
    ...[...tenths, ...decades].map((value) => grid(price, { value, label: String(value) })),
    ...waits.map((value) => grid(wait, { value, label: String(value) })),
    ...steps.map((step) => mark(step, { x, panels: [price, wait] })),
    ...control,
    line('run', shown, { x, y: ({ price: value }) => yOf(price, value) }),
    line('wait', shown, { x, y: ({ behindSeconds }) => yOf(wait, behindSeconds) }),
    ...[price, wait].map(frame),
    `<text x="${LEFT}" y="${price.top - 22}">price, weighted seconds of delay (logarithmic)</text>`,
    `<text x="${LEFT}" y="${wait.top - 8}">how long the look that is due longest waits for its turn, seconds</text>`,
    ...minutes(end).map(
      (at) =>
        `<text x="${num(x(at))}" y="${wait.top + wait.height + 18}" text-anchor="middle">${at / 60}</text>`,
    ),
    `<text x="${WIDTH - RIGHT}" y="${wait.top + wait.height + 38}" text-anchor="end">minutes of scaled time</text>`,
  ];
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${HEIGHT}" role="img" aria-label="Price of a request before and after steps in load and budget">
  <style>${STYLE}
  </style>
${parts.map((part) => `  ${part}`).join('\n')}
</svg>
`;
}

function yOf({ top, height, scale }: Panel, value: number): number {
  return top + height - Math.min(1, Math.max(0, scale(value))) * height;
}

function line(
  name: string,
  steerings: readonly Steering[],
  { x, y }: { x: (at: number) => number; y: (steering: Steering) => number },
): string {
  // Every second would be more points than pixels.
  const points = steerings.filter((_, index) => index % 2 === 0);
  const path = points.map((steering) => `${num(x(steering.at))},${num(y(steering))}`).join(' ');
  return `<polyline class="line ${name}" points="${path}"/>`;
}

function grid(panel: Panel, { value, label }: { value: number; label: string }): string {
  const y = num(yOf(panel, value));
  return `<line class="grid" x1="${LEFT}" x2="${WIDTH - RIGHT}" y1="${y}" y2="${y}"/><text x="${LEFT - 8}" y="${y}" dy="4" text-anchor="end">${label}</text>`;
}

function frame({ top, height }: Panel): string {
  return `<rect class="frame" x="${LEFT}" y="${top}" width="${WIDTH - LEFT - RIGHT}" height="${height}"/>`;
}

/** A dashed line at a step, with its name over the upper panel. */
function mark(step: Step, { x, panels }: { x: (at: number) => number; panels: readonly Panel[] }): string {
  const at = num(x(step.at));
  const lines = panels.map(
    ({ top, height }) => `<line class="step" x1="${at}" x2="${at}" y1="${top}" y2="${top + height}"/>`,
  );
  const top = panels[0]?.top ?? 0;
  const isNarrow = step.until - step.at < 100;
  const name = `<text x="${at}" y="${top - 6}"${isNarrow ? ' text-anchor="end"' : ''}>${step.name}</text>`;
  return [...lines, name].join('');
}

function legend(): string {
  const entry = (name: string, at: number, text: string): string =>
    `<line class="line ${name}" x1="${at}" x2="${at + 26}" y1="40" y2="40"/><text x="${at + 34}" y="44">${text}</text>`;
  return [
    entry('run', LEFT, 'with the steps'),
    entry('control', LEFT + 150, 'a run that always had the budget of that span'),
  ].join('');
}

/** Every five minutes that are drawn, in seconds. */
function minutes(end: number): number[] {
  return Array.from({ length: Math.floor(end / 300) + 1 }, (_, index) => 300 * index).filter(
    (at) => at >= BEGIN,
  );
}

function num(value: number): string {
  return value.toFixed(1);
}
