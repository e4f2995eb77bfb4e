// Curves: one chart per metric, with a line per selected run.
'use strict';

const palette = ['#3564d8', '#e2703a', '#2e9e63', '#b8478f', '#8a6d1f', '#1f9bb5', '#7a5bd0', '#d4503e', '#5f8a2a', '#b07cc6'];

// Bias-corrected exponential moving average.
function smoothed(values, weight) {
  let mean = 0, total = 0;
  return values.map(value => {
    if (value == null) return null;
    mean = weight * mean + (1 - weight) * value;
    total = weight * total + (1 - weight);
    return mean / total;
  });
}

function short(value) {
  if (value == null) return '';
  const size = Math.abs(value);
  if (size !== 0 && (size < 1e-3 || size >= 1e6)) return value.toExponential(2);
  return size >= 1000 ? Math.round(value).toLocaleString('en') : String(+value.toPrecision(4));
}

// "train/loss" and "test/loss" belong in one chart, the second as a dashed line.
function chartOf(name) {
  if (name === 'seconds') return null;
  const slash = name.indexOf('/');
  const part = slash < 0 ? '' : name.slice(0, slash);
  return part === 'cluster' ? {chart: name, part} : {chart: name.slice(slash + 1), part};
}

const isDashed = ({part}) => part !== 'train' && part !== '';

const firstCharts = ['loss', 'accuracy', 'learning_rate', 'gradient_norm'];
function byImportance(a, b) {
  const place = name => { const i = firstCharts.indexOf(name); return i < 0 ? (name.startsWith('cluster/') ? 99 : 50) : i; };
  return place(a) - place(b) || a.localeCompare(b);
}

// Shorter curves are not smoothed.
const fewestSmoothed = 40;

class Charts {
  // `options`: {onRange(range or null)}
  constructor(root, options) {
    this.root = root;
    this.options = options;
    this.charts = new Map();
    this.smoothing = 0;
    this.log = false;
    this.range = null;
    new ResizeObserver(() => this.resize()).observe(root);
  }

  // `runs`: [{name, colour, series: {name: {x, y}}, events}]
  draw(runs) {
    this.runs = runs;
    const wanted = new Map();
    for (const run of runs) {
      for (const [name, points] of Object.entries(run.series)) {
        const place = chartOf(name);
        if (!place || !points.x.length || (place.part === 'cluster' && points.x.length < 2)) continue;
        if (!wanted.has(place.chart)) wanted.set(place.chart, []);
        wanted.get(place.chart).push({run, part: place.part, points});
      }
    }
    for (const [name, chart] of this.charts) {
      if (wanted.has(name)) continue;
      chart.plot?.destroy();
      chart.card.remove();
      this.charts.delete(name);
    }
    for (const name of [...wanted.keys()].sort(byImportance)) this.drawOne(name, wanted.get(name));
  }

  drawOne(name, lines) {
    let chart = this.charts.get(name);
    if (!chart) {
      const plot = el('div', {className: 'plot'}), last = el('span', {className: 'last'}), legend = el('div', {className: 'legend'});
      chart = {name, card: el('div', {className: 'card chart'}, el('h2', {}, last, name.replaceAll('_', ' ')), plot, legend), box: plot, last, legend};
      this.charts.set(name, chart);
      chart.tip = el('div', {className: 'tip', hidden: true});
      chart.card.append(chart.tip);
    }
    this.root.append(chart.card);
    const style = getComputedStyle(document.documentElement);
    const key = JSON.stringify([lines.map(l => [l.run.name, l.run.colour, l.part, l.points.x.length < fewestSmoothed]), this.smoothing > 0, this.log, style.getPropertyValue('--ink')]);
    const data = this.dataOf(lines);
    chart.lines = lines;
    const newest = lines[lines.length - 1].points.y;
    chart.last.textContent = lines.length === 1 || this.runs.length === 1 ? short(newest[newest.length - 1]) : '';
    if (chart.key === key) {
      chart.plot.setData(data, false);
      this.setScales(chart);
      return;
    }
    chart.plot?.destroy();
    chart.key = key;
    chart.plot = new uPlot(this.optionsOf(chart, lines, style), data, chart.box);
    chart.legend.replaceChildren(...lines.map(line => this.legendOf(line)));
    this.setScales(chart);
  }

  // Only dense training curves are smoothed. Each point of a test or validation curve is a mean over many samples already.
  smooths({part, points}) {
    return this.smoothing > 0 && (part === 'train' || part === '') && points.y.length >= fewestSmoothed;
  }

  legendOf(line) {
    const mark = el('i', {className: isDashed(line) ? 'dashed' : ''});
    mark.style.borderColor = line.run.colour;
    const names = [this.runs.length > 1 ? line.run.name : '', line.part, this.smooths(line) ? '(smoothed, raw behind)' : ''];
    return el('span', {}, mark, names.filter(Boolean).join(' ') || line.run.name);
  }

  // Also records the column of each line's main curve.
  dataOf(lines) {
    let column = 0;
    const tables = lines.map(line => {
      const {x, y} = line.points, smooth = this.smooths(line);
      line.column = column += smooth ? 2 : 1;
      return smooth ? [x, y, smoothed(y, this.smoothing)] : [x, y];
    });
    return tables.length === 1 ? tables[0] : uPlot.join(tables);
  }

  optionsOf(chart, lines, style) {
    const ink = style.getPropertyValue('--quiet').trim(), grid = style.getPropertyValue('--grid').trim();
    const series = [{}];
    for (const line of lines) {
      const {run, points} = line;
      const drawn = {stroke: run.colour, width: 1.6, spanGaps: true, points: {show: points.x.length < fewestSmoothed, size: 5, fill: run.colour}, dash: isDashed(line) ? [6, 4] : []};
      if (this.smooths(line)) series.push({...drawn, width: 1, alpha: 0.22});
      series.push(drawn);
    }
    const axis = {stroke: ink, grid: {stroke: grid, width: 1}, ticks: {stroke: grid, width: 1}, font: '11px system-ui'};
    return {
      width: chart.box.clientWidth || 400, height: 230, legend: {show: false}, series,
      scales: {x: {time: false}, y: {distr: this.log ? 3 : 1}},
      axes: [{...axis, label: 'step', labelSize: 16, labelFont: axis.font, values: (_, ticks) => ticks.map(t => t >= 1e6 ? t / 1e6 + 'M' : t >= 10000 ? t / 1000 + 'k' : t)},
             {...axis, label: chart.name.replaceAll('_', ' '), labelSize: 16, labelFont: axis.font, size: 58, values: (_, ticks) => ticks.map(t => t == null ? '' : short(t))}],
      cursor: {drag: {x: true, y: false, setScale: false}, sync: {key: 'steps'}, points: {size: 5}, bind: {dblclick: () => () => { this.options.onRange(null); return null; }}},
      hooks: {
        setSelect: [plot => {
          if (plot.select.width < 4) return;
          this.options.onRange([plot.posToVal(plot.select.left, 'x'), plot.posToVal(plot.select.left + plot.select.width, 'x')]);
          plot.setSelect({left: 0, top: 0, width: 0, height: 0}, false);
        }],
        setCursor: [plot => this.showTip(chart, plot)],
        draw: [plot => this.drawEvents(plot)],
      },
    };
  }

  // The range of the data, or the range selected by the user.
  setScales(chart) {
    const x = chart.plot.data[0];
    let [min, max] = this.range ?? [x[0], x[x.length - 1]];
    if (min === max) [min, max] = [min - 1, max + 1];
    chart.plot.setScale('x', {min, max});
  }

  drawEvents(plot) {
    const context = plot.ctx, {top, height, left, width} = plot.bbox;
    context.save();
    for (const run of this.runs ?? []) for (const event of run.events) {
      const x = plot.valToPos(event.step, 'x', true);
      if (x < left || x > left + width) continue;
      context.strokeStyle = context.fillStyle = run.colour;
      context.setLineDash([3, 4]);
      context.globalAlpha = 0.75;
      context.beginPath();
      context.moveTo(x, top);
      context.lineTo(x, top + height);
      context.stroke();
      const size = 5 * devicePixelRatio;
      context.beginPath();
      context.moveTo(x - size, top);
      context.lineTo(x + size, top);
      context.lineTo(x, top + size * 1.4);
      context.fill();
    }
    context.restore();
  }

  showTip(chart, plot) {
    const {left, top, idx} = plot.cursor;
    const over = left >= 0 && idx != null && chart.box.matches(':hover');
    chart.tip.hidden = !over;
    if (!over) return;
    const step = plot.data[0][idx];
    const rows = [el('div', {className: 'quiet'}, `step ${step.toLocaleString('en')}`)];
    for (const {run, part, column} of chart.lines) {
      const values = plot.data[column];
      let at = idx;
      while (at > 0 && values[at] == null) --at;
      if (values[at] == null || rows.length > 12) continue;
      const mark = el('i', {});
      mark.style.background = run.colour;
      rows.push(el('div', {}, mark, `${run.name}${part ? ' ' + part : ''}: ${short(values[at])}`));
    }
    const near = (plot.scales.x.max - plot.scales.x.min) / 80;
    for (const run of this.runs) for (const event of run.events)
      if (Math.abs(event.step - step) <= near && rows.length < 16) rows.push(el('div', {}, '▼ ' + event.text.slice(0, 70)));
    chart.tip.replaceChildren(...rows);
    const x = chart.box.offsetLeft + plot.over.offsetLeft + left, flip = left > plot.over.clientWidth / 2;
    chart.tip.style.left = flip ? '' : `${x + 14}px`;
    chart.tip.style.right = flip ? `${chart.card.clientWidth - x + 14}px` : '';
    chart.tip.style.top = `${chart.box.offsetTop + Math.max(0, top - 20)}px`;
  }

  resize() {
    for (const chart of this.charts.values())
      if (chart.plot && chart.box.clientWidth > 0 && chart.plot.width !== chart.box.clientWidth)
        chart.plot.setSize({width: chart.box.clientWidth, height: 230});
  }

  // The visible steps.
  shown() {
    if (this.range) return this.range;
    let min = Infinity, max = -Infinity;
    for (const run of this.runs ?? []) for (const {x} of Object.values(run.series)) {
      if (!x.length) continue;
      min = Math.min(min, x[0]);
      max = Math.max(max, x[x.length - 1]);
    }
    return min < max ? [min, max] : null;
  }
}
