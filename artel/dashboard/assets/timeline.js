// A step as a timeline with one bar per worker: the last traced step, or else the average.
'use strict';

const stepParts = [['computing', 'computing'], ['waiting_for_data', 'waiting for data'], ['waiting_for_workers', 'waiting for others'],
                   ['on_the_wire', 'the wire'], ['updating', 'update'], ['other', 'rest']];
const stepColours = {computing: 'computing', waiting_for_data: 'data', waiting_for_workers: 'waiting', on_the_wire: 'wire', updating: 'updating', other: 'other'};
const stepNames = Object.fromEntries(stepParts);

function timeText(seconds) {
  return seconds < 1e-3 ? `${Math.round(1e6 * seconds)} µs` : seconds < 1 ? `${(1e3 * seconds).toPrecision(3)} ms` : `${seconds.toPrecision(3)} s`;
}

// rows: [{name, pieces: [[part, begin, seconds], ...]}, ...], all of a length of `seconds`.
function stepBars(rows, seconds) {
  const used = new Set(rows.flatMap(row => row.pieces.map(([part]) => part)));
  const box = el('div', {className: 'step-rows'});
  for (const {name, pieces} of rows) {
    const bar = el('div', {className: 'step-bar'});
    for (const [part, begin, length] of pieces) {
      const piece = el('i', {className: stepColours[part] ?? 'other', title: `${name}: ${stepNames[part] ?? part} ${timeText(length)}, from ${timeText(begin)} on`});
      piece.style.left = `${100 * begin / seconds}%`;
      piece.style.width = `${100 * length / seconds}%`;
      bar.append(piece);
    }
    box.append(el('span', {}, name), bar);
  }
  box.append(el('span', {}), el('div', {className: 'step-axis'}, ...[0, 0.5, 1].map(at => el('span', {}, timeText(at * seconds)))));
  const legend = el('div', {className: 'legend'}, ...stepParts.filter(([part]) => used.has(part)).map(([part, text]) => el('span', {}, el('i', {className: stepColours[part]}), text)));
  return [box, legend];
}

function gains(times) {
  const words = [['without_waiting_for_workers', 'without waiting for others'], ['without_the_wire', 'without the wire'], ['without_waiting_for_data', 'without waiting for data']]
    .filter(([key]) => times[key] >= 1.005).map(([key, text]) => `${times[key].toFixed(2)}x ${text}`);
  return words.length ? ` It would be faster: ${words.join(', ')}.` : '';
}

// The step of median length of the last trace.
function recordedStep(trace, step) {
  const {timeline} = trace;
  const ago = Math.max(0, step - timeline.step);
  return el('div', {className: 'card wide-card', id: 'step'}, el('h2', {}, `Step ${timeline.step.toLocaleString('en')}, as traced`), ...stepBars(timeline.workers, timeline.seconds),
    el('p', {className: 'quiet'}, `The step of median length of ${trace.steps.toLocaleString('en')} traced ones${ago ? `, ${ago.toLocaleString('en')} steps ago` : ''}.${gains(trace.times_faster)}`));
}

// The average step from live counters: durations of the parts, without their order.
function averageStep(live, name) {
  const rows = live.workers.filter(w => !w.server && w.computing > 0 && w.seconds_per_lane > 0 && w.lanes > 0).map(w => {
    const seconds = w.seconds_per_lane * w.lanes / w.computing;
    let begin = 0;
    const shares = [['waiting_for_data', w.waiting_for_data], ['computing', w.computing], ['waiting_for_workers', waitingForOthers(w)],
                    ['on_the_wire', w.waiting_for_the_wire]];
    const pieces = shares.map(([part, share]) => {
      const piece = [part, begin, (share ?? 0) * seconds];
      begin += piece[2];
      return piece;
    });
    return {name: w.name, pieces, seconds};
  });
  const card = el('div', {className: 'card wide-card', id: 'step'}, el('h2', {}, 'An average step'));
  if (rows.length) card.append(...stepBars(rows, Math.max(...rows.map(row => row.seconds))));
  card.append(el('p', {className: 'quiet'}, rows.length ? 'Average of the last five seconds. For the order of events, run ' : 'No measurements yet. For a timeline, run ',
    el('code', {}, `artel trace ${name}`), '.'));
  return card;
}

function stepCard(name, live, trace) {
  return trace ? recordedStep(trace, live.step) : averageStep(live, name);
}
