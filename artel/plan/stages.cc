#include "artel/plan/stages.h"

#include <algorithm>
#include <optional>

#include "artel/base/error.h"

namespace artel::plan {
namespace {

// Kernels of the backward pass that read no gradient, because they recompute forward values.
// Gradients start from an input that the forward pass does not read.
std::vector<bool> find_recomputing(const Graph& graph, const Plan& plan,
                                   const std::vector<int>& writer) {
  std::vector<bool> read(plan.buffers.size(), false), recomputes(plan.kernels.size(), false);
  for (size_t i = 0; i < plan.kernels.size(); ++i) {
    const PlannedKernel& kernel = plan.kernels[i];
    bool of_gradients = false;
    for (const int input : kernel.inputs) {
      const int buffer = viewed(plan, input);
      if (kernel.direction == Direction::forward) {
        read[buffer] = true;
        continue;
      }
      const int from = writer[buffer];
      const ValueKind kind = graph.value(plan.buffers[buffer].value).kind;
      of_gradients =
          of_gradients || (from < 0 && kind == ValueKind::input && !read[buffer]) ||
          (from >= 0 && plan.kernels[from].direction != Direction::forward && !recomputes[from]);
    }
    recomputes[i] = kernel.direction != Direction::forward && !of_gradients;
  }
  return recomputes;
}

}  // namespace

Stages::Stages(const Graph& graph, const Plan& plan, std::vector<int> origins,
               const PipelineShape& shape, bool splits, const std::set<std::string>* deferred)
    : graph_(graph), plan_(plan), shape_(shape), splits_(splits), writer_(writers(plan)) {
  assign(origins);
  find_deferred(deferred);
  split_gradients();
  find_messages();
  find_owners();
}

void Stages::assign(const std::vector<int>& origins) {
  const auto kernels = static_cast<int>(plan_.kernels.size());
  const std::vector<bool> recomputes = find_recomputing(graph_, plan_, writer_);
  const auto by_origin = [&](int origin) {
    const auto next = std::upper_bound(origins.begin(), origins.end(), origin);
    return std::max(0, static_cast<int>(next - origins.begin()) - 1);
  };
  std::vector<std::vector<int>> readers(kernels);
  stage_.resize(kernels);
  for (int i = 0; i < kernels; ++i) {
    const PlannedKernel& kernel = plan_.kernels[i];
    const bool forward = kernel.direction == Direction::forward;
    std::optional<int> stage;
    const auto at_least_or_most = [&](int other) {
      stage = !stage ? other : forward ? std::max(*stage, other) : std::min(*stage, other);
    };
    for (const NodeId node : kernel.nodes) at_least_or_most(by_origin(graph_.node(node).origin));
    for (const int input : kernel.inputs) {
      const int from = writer_[viewed(plan_, input)];
      if (from < 0) continue;
      readers[from].push_back(i);
      const bool from_forward = plan_.kernels[from].direction == Direction::forward;
      if (forward || (!from_forward && !recomputes[from])) at_least_or_most(stage_[from]);
    }
    stage_[i] = stage.value_or(0);
  }
  for (int i = kernels - 1; i >= 0; --i) {
    if (!recomputes[i] || readers[i].empty()) continue;
    stage_[i] = 0;
    for (const int reader : readers[i]) stage_[i] = std::max(stage_[i], stage_[reader]);
  }
}

// Parameter names by gradient buffer.
std::map<int, std::string> Stages::gradient_names() const {
  std::map<int, std::string> names;
  for (const GradientSlot& slot : plan_.gradients)
    names[buffer_of_slot(plan_, slot)] = graph_.value(slot.value).name;
  return names;
}

// A deferred kernel completes a gradient in place, in an input computed by a later stage.
void Stages::find_deferred(const std::set<std::string>* given) {
  const std::map<int, std::string> gradients = gradient_names();
  deferred_.assign(plan_.kernels.size(), false);
  std::vector<bool> read(plan_.buffers.size(), false);
  for (const PlannedKernel& kernel : plan_.kernels)
    for (const int input : kernel.inputs) read[viewed(plan_, input)] = true;
  for (size_t i = 0; i < plan_.kernels.size(); ++i) {
    const PlannedKernel& kernel = plan_.kernels[i];
    if (kernel.direction != Direction::weight_gradient || kernel.outputs.size() != 1 ||
        read[kernel.outputs[0]])
      continue;
    const auto gradient = gradients.find(plan_.buffers[kernel.outputs[0]].root);
    if (gradient == gradients.end()) continue;
    for (const auto& [out, in] : kernel.kernel.in_place) {
      const int sum = viewed(plan_, kernel.inputs[in]);
      if (writer_[sum] < 0 || stage_[writer_[sum]] <= stage_[i]) continue;
      size_t added = 0;
      for (const int input : kernel.inputs)
        if (const int buffer = viewed(plan_, input); buffer != sum && writer_[buffer] >= 0)
          added += plan_.buffers[buffer].bytes;
      const bool is_late =
          given ? given->contains(gradient->second) : added < plan_.buffers[sum].bytes;
      if (!is_late) continue;
      deferred_gradients_.insert(gradient->second);
      stage_[i] = stage_[writer_[sum]];
      deferred_[i] = true;
      break;
    }
  }
}

// Weight gradients can be deferred unless other gradients or stages need them.
void Stages::split_gradients() {
  const auto kernels = static_cast<int>(plan_.kernels.size());
  std::vector<bool> urgent(kernels, false);
  work_.resize(kernels);
  for (int i = kernels - 1; i >= 0; --i) {
    const Direction direction = plan_.kernels[i].direction;
    if (direction == Direction::forward) {
      work_[i] = Work::forward;
      continue;
    }
    urgent[i] = urgent[i] || direction == Direction::backward;
    work_[i] = !splits_ ? Work::backward : urgent[i] ? Work::input_gradient : Work::weight_gradient;
    for (const int input : plan_.kernels[i].inputs) {
      const int from = writer_[viewed(plan_, input)];
      if (from >= 0 && (urgent[i] || stage_[from] != stage_[i])) urgent[from] = true;
    }
  }
}

std::vector<StagePiece> Stages::pieces(int worker) const {
  std::vector<StagePiece> pieces;
  for (int stage = worker; stage < shape_.stages; stage += shape_.workers)
    pieces.push_back({stage, Work::forward});
  for (int stage = shape_.stages - shape_.workers + worker; stage >= 0; stage -= shape_.workers) {
    pieces.push_back({stage, splits_ ? Work::input_gradient : Work::backward});
    if (splits_) pieces.push_back({stage, Work::weight_gradient});
  }
  std::set<StagePiece> deferred;
  for (size_t i = 0; i < deferred_.size(); ++i)
    if (deferred_[i] && shape_.worker_of(stage_[i]) == worker)
      deferred.insert(piece_of(static_cast<int>(i)));
  pieces.insert(pieces.end(), deferred.begin(), deferred.end());
  return pieces;
}

// Each worker receives a buffer once, before the first of its pieces that reads it.
void Stages::find_messages() {
  std::map<std::pair<StagePiece, StagePiece>, std::set<int>> sent;
  for (int worker = 0; worker < shape_.workers; ++worker) {
    const std::vector<StagePiece> own = pieces(worker);
    const auto place = [&](const StagePiece& piece) {
      return std::find(own.begin(), own.end(), piece) - own.begin();
    };
    std::map<int, StagePiece> first;  // by buffer
    for (size_t i = 0; i < plan_.kernels.size(); ++i) {
      const StagePiece piece = piece_of(static_cast<int>(i));
      if (shape_.worker_of(piece.stage) != worker) continue;
      for (const int input : plan_.kernels[i].inputs) {
        const int buffer = viewed(plan_, input);
        const int from = writer_[buffer];
        if (from < 0 || shape_.worker_of(stage_[from]) == worker) continue;
        const auto [found, is_new] = first.emplace(buffer, piece);
        if (!is_new && place(piece) < place(found->second)) found->second = piece;
      }
    }
    for (const auto& [buffer, to] : first) {
      StagePiece from = piece_of(writer_[buffer]);
      const bool forward = from.work == Work::forward;
      // A forward value needed by an earlier stage is sent with the gradients.
      if (forward && to.stage < from.stage)
        from.work = splits_ ? Work::input_gradient : Work::backward;
      require(to.deferred || (to.work == Work::forward ? forward && from.stage < to.stage
                                                       : forward || from.stage > to.stage),
              ErrorKind::internal,
              "[pipeline] stage {} needs a value that stage {} computes too late", to.stage,
              from.stage);
      sent[{from, to}].insert(buffer);
    }
  }
  for (const auto& [ends, buffers] : sent) {
    StageMessage message = {ends.first, ends.second, {buffers.begin(), buffers.end()}, 0};
    for (const int buffer : buffers) message.bytes += plan_.buffers[buffer].bytes;
    messages_.push_back(std::move(message));
  }
}

void Stages::find_owners() {
  std::map<ValueId, int> owner;
  for (const GradientSlot& slot : plan_.gradients) {
    const int buffer = buffer_of_slot(plan_, slot);
    const int kernel = buffer < 0 ? -1 : writer_[buffer];
    owners_.push_back(kernel < 0 ? 0 : stage_[kernel]);
    owner[slot.value] = owners_.back();
  }
  std::map<ValueId, std::set<int>> readers;
  for (size_t i = 0; i < plan_.kernels.size(); ++i)
    for (const int input : plan_.kernels[i].inputs) {
      const ValueId value = plan_.buffers[viewed(plan_, input)].value;
      if (const auto found = owner.find(value); found != owner.end() && stage_[i] != found->second)
        readers[value].insert(stage_[i]);
    }
  for (const auto& [value, stages] : readers)
    shared_.push_back({value, owner[value], {stages.begin(), stages.end()}});
}

Excerpt Stages::excerpt(int worker) const {
  Excerpt excerpt;
  for (const StagePiece& piece : pieces(worker)) {
    ExcerptPiece part;
    for (size_t i = 0; i < plan_.kernels.size(); ++i)
      if (piece_of(static_cast<int>(i)) == piece) part.kernels.push_back(static_cast<int>(i));
    for (const StageMessage& message : messages_) {
      if (message.to == piece)
        part.arrivals.insert(part.arrivals.end(), message.buffers.begin(), message.buffers.end());
      if (message.from == piece)
        part.departures.insert(part.departures.end(), message.buffers.begin(),
                               message.buffers.end());
    }
    excerpt.push_back(std::move(part));
  }
  return excerpt;
}

}  // namespace artel::plan
