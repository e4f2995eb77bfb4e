#include "artel/train/stepper.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <optional>
#include <set>

#include "artel/base/error.h"
#include "artel/base/pages.h"
#include "artel/exec/libraries.h"
#include "artel/exec/sums.h"
#include "artel/optim/clipping.h"
#include "artel/predict/batches.h"

namespace artel {
namespace {

// What is known about why a loss is not finite. Enormous weights come from steps that were too
// large; anything else does not.
std::string suspicion(const Parameters& parameters) {
  constexpr float kBeyondMeasure = 1e6f;
  float largest = 0;
  std::string name;
  for (const ParameterEntry& entry : parameters.entries())
    for (const float value : parameters.values(entry)) {
      if (!std::isfinite(value))
        return fmt::format(
            "'{}' has been {} since an earlier update; set check_numbers = true to "
            "find the first op that produced such a number",
            entry.name, value);
      if (entry.is_state || std::fabs(value) <= largest) continue;
      largest = std::fabs(value);
      name = entry.name;
    }
  if (largest > kBeyondMeasure)
    return fmt::format("weights have grown to {:.1e} in '{}'; try a lower learning rate", largest,
                       name);
  return fmt::format(
      "no weight is larger than {:.3g}; set check_numbers = true to find the first "
      "op that produced such a number, and look at the data",
      largest);
}

}  // namespace

// The memory in which one lane at a time runs, and the sums of the lanes it has finished.
struct Stepper::Slot {
  ThreadPool serial{1, limit_library_threads};
  ShardExchange* shards = nullptr;
  std::map<int64_t, std::unique_ptr<Frame>> frames;  // by samples
  struct Sum {
    comm::LaneRange lanes;
    Memory data;
  };
  std::vector<Sum> sums;
  std::vector<Memory> spare;
};

// How the sums of all slots become the partial sums of the worker, bucket by bucket: each slot's
// last lane reports its buckets, and whoever reports a bucket last adds it up.
struct Stepper::Assembly {
  std::vector<comm::LaneRange> entries;
  std::vector<Memory> data;                 // of each entry, filled in as lanes begin
  std::vector<std::pair<int, int>> merges;  // (into, from)
  std::vector<int> survivors;
  std::vector<std::atomic<int>> missing;  // slots that have not reported a bucket yet
  const Ready& ready;

  Assembly(int lanes, std::vector<comm::LaneRange> ranges, size_t buckets, int slots,
           const Ready& ready)
      : entries(std::move(ranges)), data(entries.size()), missing(buckets), ready(ready) {
    for (auto& count : missing) count = slots;
    std::vector<comm::LaneRange> now = entries;
    for (size_t i = 0; i < now.size(); ++i) survivors.push_back(static_cast<int>(i));
    // Adds neighbours that are the two halves of one node of the tree, until none are left.
    for (size_t i = 1; i < survivors.size();) {
      comm::LaneRange &left = now[survivors[i - 1]], &right = now[survivors[i]];
      if (comm::are_halves(lanes, left, right)) {
        merges.emplace_back(survivors[i - 1], survivors[i]);
        left.last = right.last;
        survivors.erase(survivors.begin() + static_cast<std::ptrdiff_t>(i));
        i = std::max<size_t>(1, i - 1);
      } else {
        ++i;
      }
    }
  }

  std::vector<Memory> partials() const {
    std::vector<Memory> result;
    for (const int survivor : survivors) result.push_back(data[survivor]);
    return result;
  }
};

Stepper::Stepper(const Model& model, const TensorType& x, const TensorType& y, const Loss& loss,
                 const optim::OptimizerConfig& optimizer, Parameters& parameters,
                 KernelChoices& choices, StepperOptions options)
    : model_(model),
      x_(x),
      y_(y),
      loss_(loss),
      parameters_(parameters),
      choices_(choices),
      options_(std::move(options)),
      pool_(std::make_unique<ThreadPool>(options_.threads, limit_library_threads)),
      update_(optimizer, parameters, *pool_, options_.trained),
      part_(ShardPart::all(options_.shards)) {}

Stepper::~Stepper() = default;

void Stepper::set_sum_memory(Allocate allocate) {
  for (const auto& slot : slots_) {
    slot->sums.clear();
    slot->spare.clear();
  }
  allocate_sums_ = std::move(allocate);
}

void Stepper::drop_programs() {
  slots_.clear();  // their frames are of the programs
  programs_.clear();
  region_ = {};
}

void Stepper::set_part(Restrict restrict_program) {
  drop_programs();
  restrict_ = std::move(restrict_program);
}

void Stepper::set_shards(const ShardPart& part, Exchanges exchange) {
  drop_programs();
  part_ = part;
  exchanges_ = std::move(exchange);
}

Program::RunOptions Stepper::run_options(int64_t step, int lane) const {
  Program::RunOptions run;
  run.context = {options_.seed, step, lane, exchanges_ ? exchanges_(0) : nullptr};
  run.check_numbers = options_.check_numbers;
  run.check_memory = options_.check_memory;
  if (timing_) run.timing = [this, lane](const KernelTiming& timing) { timing_(lane, timing); };
  return run;
}

void Stepper::write_statistics(const Frame* frame, int64_t samples, const Work& work,
                               std::span<float> statistics) const {
  statistics[SummedRegion::kStop] = work.stop ? 1 : 0;
  statistics[SummedRegion::kTrace] = work.trace ? 1 : 0;
  statistics[SummedRegion::kNewcomers] = work.newcomers ? 1 : 0;
  if (!frame) return;
  const Program& program = frame->program();
  if (program.computes("loss")) {
    const auto count = static_cast<float>(samples);
    statistics[SummedRegion::kLoss] = frame->scalar("loss") * count;
    statistics[SummedRegion::kWeight] =
        region_.weighted() ? frame->scalar("loss_weight") * count : count;
    statistics[SummedRegion::kSamples] = count;
  }
  for (const Metrics::Part& part : region_.metrics().parts()) {
    if (!program.computes(part.output)) continue;
    const Tensor sums = frame->output(part.output);
    std::copy_n(sums.values<float>().begin(), part.size,
                statistics.begin() + SummedRegion::kFirstMetric + part.offset);
  }
}

void Stepper::rest() {
  for (const auto& slot : slots_) {
    slot->frames.clear();
    for (const Slot::Sum& sum : slot->sums) forget(sum.data.host());
    for (const Memory& memory : slot->spare) forget(memory.host());
  }
}

Graph Stepper::graph(int64_t lane_batch, const ShardPart& part) const {
  return training_graph(model_, batch_of(x_, lane_batch), batch_of(y_, lane_batch), loss_,
                        options_.trained, options_.metrics, part)
      .graph;
}

Stepper::Compiled& Stepper::compiled(int64_t lane_batch) {
  std::unique_ptr<Compiled>& found = programs_[lane_batch];
  if (!found) {
    const bool side_by_side = options_.lanes >= options_.threads && !restrict_;
    found.reset(new Compiled{Program(graph(lane_batch),
                                     {.threads = side_by_side ? 1 : options_.threads,
                                      .memory_limit = options_.memory_limit,
                                      .recompute = recomputed_},
                                     choices_),
                             {}});
    if (found->program.recomputed()) recomputed_ = found->program.recomputed();
    if (restrict_) restrict_(found->program, lane_batch);
    if (region_.empty()) {
      region_ = SummedRegion(found->program, options_.metrics, options_.bucket_bytes);
      update_.bind(region_);
    }
    region_.check(found->program);
    found->ready = region_.ready_kernels(found->program);
  }
  return *found;
}

const std::vector<Bucket>& Stepper::buckets(int64_t batch) {
  // The largest lanes come first: they decide what all recompute.
  std::set<int64_t, std::greater<>> sizes;
  for (int lane = 0; lane < options_.lanes; ++lane) {
    const auto [begin, end] = rows_of_lane(batch, options_.lanes, lane);
    if (end > begin) sizes.insert(end - begin);
  }
  // A limit that suits smaller lanes may not suit larger ones: the error says what all need.
  std::optional<MemoryLimitError> most;
  for (const int64_t size : sizes) {
    try {
      compiled(size);
    } catch (const MemoryLimitError& error) {
      if (!most || error.needed() > most->needed()) most = error;
      programs_.erase(size);
    }
  }
  if (most) throw *most;
  return region_.buckets();
}

float Stepper::observation_scale(const Work& work) const {
  const comm::LaneRange all =
      work.observing.size() > 0 ? work.observing : comm::LaneRange{0, options_.lanes};
  int seeing = 0;
  for (int lane = all.first; lane < all.last; ++lane) {
    const auto [begin, end] = rows_of_lane(work.batch, options_.lanes, lane);
    if (end > begin) ++seeing;
  }
  return seeing > 0 ? static_cast<float>(all.size()) / static_cast<float>(seeing) : 1;
}

Memory Stepper::take_buffer(Slot& slot) {
  if (slot.spare.empty()) {
    const std::lock_guard lock(allocate_mutex_);
    return allocate_sums_(region_.bytes());
  }
  Memory buffer = std::move(slot.spare.back());
  slot.spare.pop_back();
  return buffer;
}

void Stepper::run_lane(Slot& slot, ThreadPool& pool, int lane, Passage passage, const Tensor& x,
                       const Tensor& y, const Work& work, Assembly* assembly) {
  const int64_t samples = passage.samples = x.shape()[0];
  const auto pass = [&](int kernel) {
    passage.kernel = kernel;
    if (passage_) passage_(passage);
  };
  const Memory memory = take_buffer(slot);
  const Memory gradients =
      memory.part(region_.statistics_bytes(), region_.bytes() - region_.statistics_bytes());
  slot.sums.push_back({{lane, lane + 1}, memory});
  if (assembly)
    for (const Slot::Sum& sum : slot.sums)
      for (size_t i = 0; i < assembly->entries.size(); ++i)
        if (assembly->entries[i] == sum.lanes) assembly->data[i] = sum.data;

  size_t next = 0;
  Frame* frame = nullptr;
  const Compiled* program = nullptr;  // of the lane's samples, if it has any
  const float weight = static_cast<float>(samples) / static_cast<float>(work.batch);
  const float observed = observation_scale(work);
  const auto report = [&](int kernel) {
    while (next < region_.buckets().size() && (!program || program->ready[next] <= kernel)) {
      if (next == 0) write_statistics(frame, samples, work, memory.floats());
      const Bucket& bucket = region_.buckets()[next];
      if (program && observed != 1)
        for (const SummedRegion::Part& part : region_.parts())
          if (part.is_state && bucket.contains(part.offset))
            for (float& value : SummedRegion::values(memory, part)) value *= observed;
      if (program && !work.noise.empty()) {
        LaneNoise& noise = work.noise[static_cast<size_t>(lane)];
        if (next == 0) noise.weight = memory.floats()[SummedRegion::kWeight];
        for (const SummedRegion::Part& part : region_.parts())
          if (!part.is_state && bucket.contains(part.offset))
            noise.squares += optim::sum_of_squares(pool, SummedRegion::values(memory, part));
      }
      if (assembly && assembly->missing[next].fetch_sub(1) == 1) {
        for (const auto& [into, from] : assembly->merges)
          add_into(pool, assembly->data[from].part(bucket.offset, bucket.bytes),
                   assembly->data[into].part(bucket.offset, bucket.bytes));
        if (assembly->ready) assembly->ready(static_cast<int>(next), assembly->partials());
      }
      ++next;
    }
  };
  if (samples == 0) {
    pass(0);
    std::ranges::fill(memory.floats(), 0.0f);
  } else {
    program = programs_.at(samples).get();
    std::unique_ptr<Frame>& found = slot.frames[samples];
    if (!found) found = std::make_unique<Frame>(program->program, parameters_, gradients);
    frame = found.get();
    frame->bind_gradients(gradients);
    frame->set_input("x", x);
    frame->set_input("y", y);
    frame->set_input("weight", Tensor::from<float>({}, {weight}));
    Program::RunOptions run = run_options(work.step, lane);
    run.context.shards = slot.shards;
    // While memory is checked, nobody else may touch it: buckets are reported at the end.
    run.after_kernel = [&](int kernel) {
      if (!options_.check_memory) report(kernel);
      pass(kernel + 1);
    };
    pass(0);
    program->program.run(*frame, pool, run);
  }
  report(std::numeric_limits<int>::max());
  if (assembly) return;
  // Not the last lane of this slot: whole neighbours that form one node are added at once.
  while (slot.sums.size() > 1) {
    const Slot::Sum right = slot.sums.back(), left = slot.sums[slot.sums.size() - 2];
    if (!comm::are_halves(options_.lanes, left.lanes, right.lanes)) break;
    add_into(pool, right.data, left.data);
    slot.spare.push_back(right.data);
    slot.sums.pop_back();
    slot.sums.back().lanes.last = right.lanes.last;
  }
}

int Stepper::sums_in_memory(int lanes, int threads) {
  const int running = side_by_side(lanes, threads);
  int all = 0;
  for (int i = 0; i < running; ++i) {
    const comm::LaneRange own = comm::even_lanes(lanes, running, i);
    std::vector<comm::LaneRange> sums;
    size_t most = 0;
    for (int lane = own.first; lane < own.last; ++lane) {
      sums.push_back({lane, lane + 1});
      most = std::max(most, sums.size());
      while (sums.size() > 1 && comm::are_halves(lanes, sums[sums.size() - 2], sums.back())) {
        sums[sums.size() - 2].last = sums.back().last;
        sums.pop_back();
      }
    }
    all += static_cast<int>(most);
  }
  return all;
}

int Stepper::rounds(int lanes) const {
  const int running = options_.lanes >= options_.threads ? std::min(options_.threads, lanes) : 1;
  return (lanes + running - 1) / running;
}

void Stepper::compute(const Work& work, const Tensor& x, const Tensor& y, const Ready& ready) {
  buckets(work.batch);
  const comm::LaneRange range = work.range;
  if (range.size() == 0) return;
  const bool side_by_side = options_.lanes >= options_.threads;
  const int running = side_by_side ? std::min(options_.threads, range.size()) : 1;
  while (static_cast<int>(slots_.size()) < running) {
    slots_.push_back(std::make_unique<Slot>());
    if (exchanges_) slots_.back()->shards = exchanges_(static_cast<int>(slots_.size()) - 1);
  }

  std::vector<comm::LaneRange> entries, own;
  for (int i = 0; i < running; ++i) {
    const comm::LaneRange part = comm::even_lanes(range.size(), running, i);
    own.push_back({range.first + part.first, range.first + part.last});
    const int last = own.back().last - 1;
    for (const comm::LaneRange& node :
         comm::lane_subtrees(options_.lanes, {own.back().first, last}))
      if (node.size() > 0) entries.push_back(node);
    entries.push_back({last, last + 1});
  }
  Assembly assembly(options_.lanes, std::move(entries), region_.buckets().size(), running, ready);
  const int64_t first_row = rows_of_lane(work.batch, options_.lanes, range.first).first;
  const auto run_slot = [&](int64_t index) {
    Slot& slot = *slots_[index];
    for (const Slot::Sum& sum : slot.sums) slot.spare.push_back(sum.data);
    slot.sums.clear();
    for (int lane = own[index].first; lane < own[index].last; ++lane) {
      const auto [begin, end] = rows_of_lane(work.batch, options_.lanes, lane);
      const int round = lane - own[index].first;
      const auto beside = std::count_if(own.begin(), own.end(), [&](const comm::LaneRange& lanes) {
        return lanes.size() > round;
      });
      run_lane(slot, side_by_side ? slot.serial : *pool_, lane,
               {.round = round, .beside = static_cast<int>(beside)},
               x.rows(begin - first_row, end - first_row),
               y.rows(begin - first_row, end - first_row), work,
               lane + 1 == own[index].last ? &assembly : nullptr);
    }
  };
  if (side_by_side)
    pool_->run(running, run_slot);
  else
    run_slot(0);
}

Memory Stepper::memory_without_lanes() {
  if (slots_.empty()) slots_.push_back(std::make_unique<Slot>());
  Slot& slot = *slots_.front();
  for (const Slot::Sum& sum : std::exchange(slot.sums, {})) slot.spare.push_back(sum.data);
  slot.sums.push_back({{0, 0}, take_buffer(slot)});
  return slot.sums.front().data;
}

StepStatistics Stepper::read_statistics(std::span<const float> statistics, int64_t step) const {
  const float loss = statistics[SummedRegion::kLoss], weight = statistics[SummedRegion::kWeight];
  if (!std::isfinite(loss) || !std::isfinite(weight))
    fail(ErrorKind::numeric, "[step {}] the loss is {}, expected a finite number: {}", step,
         std::isnan(loss) ? std::fabs(loss) : loss,  // the sign of "-nan" means nothing
         suspicion(parameters_));
  const float* const sums = statistics.data() + SummedRegion::kFirstMetric;
  return {.weighted_loss = loss,
          .weight = weight,
          .samples = statistics[SummedRegion::kSamples],
          .sums = {sums, sums + region_.metrics().sums()},
          .stop = statistics[SummedRegion::kStop] > 0,
          .trace = statistics[SummedRegion::kTrace] > 0,
          .newcomers = statistics[SummedRegion::kNewcomers] > 0};
}

StepStatistics Stepper::step(const Tensor& x, const Tensor& y, int64_t step, float learning_rate) {
  Memory total;
  compute({.range = {0, options_.lanes}, .batch = x.shape()[0], .step = step}, x, y,
          [&](int, const std::vector<Memory>& partials) { total = partials.front(); });
  const StepStatistics statistics = read_statistics(total.floats(), step);
  Update::Options update = {.step = step,
                            .learning_rate = learning_rate,
                            .gradient_scale = statistics.gradient_scale(),
                            .lanes = options_.lanes};
  if (update_.clips()) update.gradient_scale *= update_.clip_scale(total, update.gradient_scale);
  update_.apply(total, update);
  return statistics;
}

}  // namespace artel
