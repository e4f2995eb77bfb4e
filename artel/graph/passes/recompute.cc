#include "artel/graph/passes/recompute.h"

#include <algorithm>
#include <limits>
#include <map>
#include <set>

#include "artel/graph/cost.h"
#include "artel/graph/op.h"
#include "artel/graph/ops/shards.h"
#include "artel/graph/passes/rewrite.h"

namespace artel {
namespace {

constexpr size_t kLargePeak = size_t{512} << 20;
constexpr double kInfinity = std::numeric_limits<double>::infinity();

// The most bytes of computed values that are alive at the same time, in the order of the nodes.
size_t peak_of(const Graph& graph) {
  std::vector<NodeId> last(graph.values().size(), -1);
  const auto nodes = static_cast<NodeId>(graph.nodes().size());
  for (NodeId id = 0; id < nodes; ++id) {
    for (const ValueId input : graph.node(id).inputs) last[input] = id;
    for (const ValueId output : graph.node(id).outputs) last[output] = std::max(last[output], id);
  }
  for (const auto& [name, value] : graph.outputs()) last[value] = nodes;
  std::vector<bool> elsewhere(graph.values().size(), false);  // gradients have their own memory
  for (const GradientOf& g : graph.gradients()) elsewhere[g.gradient] = true;
  std::vector<std::vector<ValueId>> dying(static_cast<size_t>(nodes) + 1);
  size_t alive = 0, peak = 0;
  for (NodeId id = 0; id < nodes; ++id) {
    for (const ValueId output : graph.node(id).outputs) {
      if (elsewhere[output]) continue;
      alive += bytes_of(graph, output);
      dying[last[output]].push_back(output);
    }
    peak = std::max(peak, alive);
    for (const ValueId value : dying[id]) alive -= bytes_of(graph, value);
  }
  return peak;
}

class Chooser {
 public:
  explicit Chooser(const Graph& graph) : graph_(graph), forward_(graph.forward_end()) {
    const size_t values = graph.values().size();
    last_forward_use_.assign(values, -1);
    backward_use_.assign(values, false);
    for (NodeId id = 0; id < static_cast<NodeId>(graph.nodes().size()); ++id)
      for (const ValueId input : graph.node(id).inputs) {
        if (id < forward_)
          last_forward_use_[input] = id;
        else
          backward_use_[input] = true;
      }
    measure_segments();
  }

  std::vector<RecomputeChoice> run() const {
    std::set<double> sizes;
    for (const Segment& s : segments_) sizes.insert(s.inside);
    std::vector<double> bounds(sizes.begin(), sizes.end());
    std::vector<RecomputeChoice> choices;
    for (int i = 0; i <= kBounds && !bounds.empty(); ++i) {
      const double bound = bounds[(bounds.size() - 1) * static_cast<size_t>(i) / kBounds];
      for (double price = 1e-14; price < 1e-5; price *= 4) add(choices, partition(bound, price));
    }
    for (RecomputeChoice& choice : choices) choice.peak_bytes = peak_of(recompute(graph_, choice));
    std::stable_sort(choices.begin(), choices.end(), [](const auto& a, const auto& b) {
      return std::pair(a.extra_seconds, a.peak_bytes) < std::pair(b.extra_seconds, b.peak_bytes);
    });
    std::vector<RecomputeChoice> useful;
    for (RecomputeChoice& choice : choices)
      if (useful.empty() || choice.peak_bytes < useful.back().peak_bytes)
        useful.push_back(std::move(choice));
    return useful;
  }

 private:
  static constexpr int kBounds = 16;

  struct Segment {
    double keep = 0;     // bytes that stay if the segment is kept
    double inside = 0;   // bytes that are live again when it is recomputed
    double out = 0;      // bytes that later segments read
    double seconds = 0;  // of computing it again
  };

  Segment& segment(NodeId begin, NodeId end) {
    return segments_[static_cast<size_t>(begin) * (forward_ + 1) + end];
  }
  const Segment& segment(NodeId begin, NodeId end) const {
    return segments_[static_cast<size_t>(begin) * (forward_ + 1) + end];
  }

  void measure_segments() {
    segments_.resize(static_cast<size_t>(forward_ + 1) * (forward_ + 1));
    for (NodeId end = 1; end <= forward_; ++end) {
      Segment s;
      for (NodeId begin = end - 1; begin >= 0; --begin) {
        const Node& node = graph_.node(begin);
        s.seconds += estimated_seconds(graph_, node);
        for (const ValueId output : node.outputs) {
          const auto bytes = static_cast<double>(bytes_of(graph_, output));
          const bool leaves = last_forward_use_[output] >= end || exchanges_shards(node.op->name);
          if (leaves) s.out += bytes;
          if (backward_use_[output] || leaves) s.keep += bytes;
          if (!leaves) s.inside += bytes;
        }
        segment(begin, end) = s;
      }
    }
  }

  RecomputeChoice partition(double bound, double price) const {
    std::vector<double> best(static_cast<size_t>(forward_) + 1, kInfinity);
    std::vector<RecomputeSegment> chosen(best.size());
    best[0] = 0;
    for (NodeId end = 1; end <= forward_; ++end)
      for (NodeId begin = 0; begin < end; ++begin) {
        const Segment& s = segment(begin, end);
        const double kept = best[begin] + price * s.keep;
        if (kept < best[end]) {
          best[end] = kept;
          chosen[end] = {begin, end, false};
        }
        const double again = best[begin] + s.seconds + price * s.out;
        // Values after the last cut are needed immediately, so recomputing them gains nothing.
        if (s.inside <= bound && end < forward_ && again < best[end]) {
          best[end] = again;
          chosen[end] = {begin, end, true};
        }
      }
    RecomputeChoice choice;
    for (NodeId end = forward_; end > 0; end = chosen[end].begin) {
      choice.segments.push_back(chosen[end]);
      if (chosen[end].recomputed) choice.extra_seconds += segment(chosen[end].begin, end).seconds;
    }
    std::reverse(choice.segments.begin(), choice.segments.end());
    return choice;
  }

  static void add(std::vector<RecomputeChoice>& choices, RecomputeChoice choice) {
    const auto same = [&](const RecomputeChoice& other) {
      return std::equal(choice.segments.begin(), choice.segments.end(), other.segments.begin(),
                        other.segments.end(), [](const auto& a, const auto& b) {
                          return a.begin == b.begin && a.end == b.end &&
                                 a.recomputed == b.recomputed;
                        });
    };
    if (std::none_of(choices.begin(), choices.end(), same)) choices.push_back(std::move(choice));
  }

  const Graph& graph_;
  NodeId forward_;
  std::vector<NodeId> last_forward_use_;
  std::vector<bool> backward_use_;
  std::vector<Segment> segments_;
};

// Copies the graph; backward nodes read second copies of the values that are `dropped`.
class Recomputer {
 public:
  Recomputer(const Graph& graph, std::vector<bool> dropped)
      : graph_(graph), rewriter_(graph), dropped_(std::move(dropped)) {}

  Graph run() {
    const NodeId forward = graph_.forward_end();
    for (NodeId id = 0; id < static_cast<NodeId>(graph_.nodes().size()); ++id) {
      const Node& node = graph_.node(id);
      if (id < forward) {
        rewriter_.copy(node);
        continue;
      }
      std::vector<Value> inputs;
      for (const ValueId input : node.inputs)
        inputs.push_back(dropped_[input] ? again(input) : rewriter_.now(input));
      const std::vector<Value> results = rewriter_.target().adopt(node, inputs);
      for (size_t i = 0; i < node.outputs.size(); ++i)
        rewriter_.replace(node.outputs[i], results[i]);
    }
    return rewriter_.finish();
  }

 private:
  // Recomputes the value, with all dropped values that it needs.
  Value again(ValueId value) {
    const auto found = second_.find(value);
    if (found != second_.end()) return found->second;
    const Node& node = graph_.node(graph_.value(value).producer);
    std::vector<Value> inputs;
    for (const ValueId input : node.inputs)
      inputs.push_back(dropped_[input] ? again(input) : rewriter_.now(input));
    Node copy = node;
    copy.direction = Direction::backward;
    const std::vector<Value> results = rewriter_.target().adopt(copy, inputs);
    for (size_t i = 0; i < node.outputs.size(); ++i) second_[node.outputs[i]] = results[i];
    return second_[value];
  }

  const Graph& graph_;
  Rewriter rewriter_;
  std::vector<bool> dropped_;
  std::map<ValueId, Value> second_;
};

bool is_plain_batch_norm(const Node& node) {
  return node.op->name == "batch_norm" && node.inputs.size() == 3;
}

}  // namespace

std::vector<RecomputeChoice> recompute_choices(const Graph& graph) { return Chooser(graph).run(); }

// Drops the values of a segment that later segments do not read. Keeps values exchanged with other
// workers, which may drop other values but must exchange in the same order.
Graph recompute(const Graph& graph, const RecomputeChoice& choice) {
  const NodeId forward = graph.forward_end();
  std::vector<NodeId> last_use(graph.values().size(), -1);
  for (NodeId id = 0; id < forward; ++id)
    for (const ValueId input : graph.node(id).inputs) last_use[input] = id;
  std::vector<bool> dropped(graph.values().size(), false);
  for (const RecomputeSegment& segment : choice.segments)
    for (NodeId id = segment.begin; segment.recomputed && id < segment.end; ++id)
      for (const ValueId output : graph.node(id).outputs)
        dropped[output] =
            last_use[output] < segment.end && !exchanges_shards(graph.node(id).op->name);
  return Recomputer(graph, std::move(dropped)).run();
}

Graph recompute_norms(const Graph& graph, const NormRecomputation& choice) {
  const bool batch_norms = choice.batch_norms
                               ? *choice.batch_norms
                               : peak_of(graph) > kLargePeak / static_cast<size_t>(choice.lanes);
  const NodeId forward = graph.forward_end();
  std::vector<bool> dropped(graph.values().size(), false);
  for (NodeId id = 0; id < forward; ++id) {
    const Node& node = graph.node(id);
    if (node.op->name == "layer_norm" || node.op->name == "rms_norm" ||
        (batch_norms && is_plain_batch_norm(node)))
      dropped[node.outputs[0]] = true;
  }
  return Recomputer(graph, std::move(dropped)).run();
}

bool recomputes_batch_norms(const Graph& graph) {
  for (auto id = graph.forward_end(); id < std::ssize(graph.nodes()); ++id)
    if (is_plain_batch_norm(graph.node(id))) return true;
  return false;
}

}  // namespace artel
