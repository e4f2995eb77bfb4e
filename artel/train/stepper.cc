#include "artel/train/stepper.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <optional>
#include <set>

#include "artel/base/error.h"
#include "artel/exec/kernels/copy.h"
#include "artel/exec/libraries.h"
#include "artel/predict/batches.h"

namespace artel {
namespace {

// At the front of the region: sums over lanes that are no gradients.
struct Statistics {
  float loss = 0;  // times the lane's share of the batch
  float correct = 0;
  float stop = 0;
  float labels = 0;
};

constexpr size_t kStatisticsBytes = SummedRegion::kStatisticsBytes;

// What is known of why a loss is not finite. Weights that have grown beyond all measure come of
// steps that were too large; others do not.
std::string suspicion(const Parameters& parameters) {
  constexpr float kBeyondMeasure = 1e6f;
  float largest = 0;
  std::string name;
  for (const ParameterEntry& entry : parameters.entries())
    for (const float value : parameters.values(entry)) {
      if (!std::isfinite(value))
        return fmt::format(
            "'{}' has been {} since an earlier update; set check_numbers = true to "
            "find the first op that gave such a number",
            entry.name, value);
      if (!entry.trained || std::fabs(value) <= largest) continue;
      largest = std::fabs(value);
      name = entry.name;
    }
  if (largest > kBeyondMeasure)
    return fmt::format("weights have grown to {:.1e} in '{}'; try a lower learning rate", largest,
                       name);
  return fmt::format(
      "no weight is larger than {:.3g}; set check_numbers = true to find the first "
      "op that gave such a number, and look at the data",
      largest);
}

}  // namespace

// The memory in which one lane at a time runs, and the sums of the lanes it has finished.
struct Stepper::Slot {
  ThreadPool serial{1, limit_library_threads};
  std::map<int64_t, std::unique_ptr<Lane>> lanes;  // by samples
  struct Sum {
    comm::LaneRange lanes;
    std::byte* data;
  };
  std::vector<Sum> sums;
  std::vector<std::byte*> spare;
};

// How the sums of all slots become the partial sums of the worker, bucket by bucket: each slot's
// last lane reports its buckets, and whoever reports a bucket last adds it up.
struct Stepper::Assembly {
  std::vector<comm::LaneRange> entries;
  std::vector<std::byte*> data;             // of each entry, filled in as lanes begin
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
      const comm::LaneRange both = {left.first, right.last};
      if (comm::lane_subtrees(lanes, both).size() == 1 && comm::lane_split(both) == right.first) {
        merges.emplace_back(survivors[i - 1], survivors[i]);
        left = both;
        survivors.erase(survivors.begin() + static_cast<std::ptrdiff_t>(i));
        i = std::max<size_t>(1, i - 1);
      } else {
        ++i;
      }
    }
  }

  std::vector<std::byte*> partials() const {
    std::vector<std::byte*> result;
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
      update_(optimizer, parameters, *pool_, options_.trained) {
  if (!options_.allocate_sums) options_.allocate_sums = allocate;
}

Stepper::~Stepper() = default;

Stepper::Compiled& Stepper::compiled(int64_t lane_batch) {
  std::unique_ptr<Compiled>& found = programs_[lane_batch];
  if (!found) {
    ModelGraph model = training_graph(model_, batch_of(x_, lane_batch), batch_of(y_, lane_batch),
                                      loss_, options_.trained);
    const bool side_by_side = options_.lanes >= options_.threads;
    found.reset(new Compiled{Program(std::move(model.graph),
                                     {.threads = side_by_side ? 1 : options_.threads,
                                      .memory_limit = options_.memory_limit},
                                     choices_),
                             {}});
    if (region_.empty()) {
      region_ = SummedRegion(found->program, options_.bucket_bytes);
      update_.bind(region_);
    }
    region_.check(found->program);
    found->ready = region_.ready_steps(found->program);
  }
  return *found;
}

const std::vector<Bucket>& Stepper::buckets(int64_t batch) {
  std::set<int64_t> sizes;
  for (int lane = 0; lane < options_.lanes; ++lane) {
    const auto [begin, end] = rows_of_lane(batch, options_.lanes, lane);
    if (end > begin) sizes.insert(end - begin);
  }
  // A limit that suits the smaller lanes may not do for the others: what all of them need is told.
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

std::byte* Stepper::take_buffer(Slot& slot) {
  if (slot.spare.empty()) {
    const std::lock_guard lock(buffers_mutex_);
    buffers_.push_back(options_.allocate_sums(region_.bytes()));
    return buffers_.back().get();
  }
  std::byte* buffer = slot.spare.back();
  slot.spare.pop_back();
  return buffer;
}

void Stepper::merge(ThreadPool& pool, std::byte* into, const std::byte* from, size_t offset,
                    size_t bytes) {
  kernels::add_into(pool, static_cast<int64_t>(bytes / sizeof(float)),
                    reinterpret_cast<const float*>(from + offset),
                    reinterpret_cast<float*>(into + offset));
}

void Stepper::run_lane(Slot& slot, ThreadPool& pool, int lane, const Tensor& x, const Tensor& y,
                       const Work& work, Assembly* assembly) {
  const int64_t samples = x.shape()[0];
  std::byte* buffer = take_buffer(slot);
  slot.sums.push_back({{lane, lane + 1}, buffer});
  if (assembly)
    for (const Slot::Sum& sum : slot.sums)
      for (size_t i = 0; i < assembly->entries.size(); ++i)
        if (assembly->entries[i] == sum.lanes) assembly->data[i] = sum.data;

  size_t next = 0;
  Lane* memory = nullptr;
  const Compiled* program = nullptr;  // of the lane's samples, if it has any
  const float weight = static_cast<float>(samples) / static_cast<float>(work.batch);
  const float observed = observation_scale(work);
  const auto report = [&](int step) {
    while (next < region_.buckets().size() && (!program || program->ready[next] <= step)) {
      if (next == 0) {
        Statistics statistics;
        statistics.stop = work.stop ? 1 : 0;
        if (memory) {
          const Tensor labels = options_.mixtures ? largest_shares(y) : y;
          statistics.loss = memory->scalar("loss") * weight;
          statistics.correct =
              static_cast<float>(count_correct(memory->output("prediction"), labels));
          statistics.labels = static_cast<float>(count_labels(labels));
        }
        std::memcpy(buffer, &statistics, sizeof statistics);
      }
      const Bucket& bucket = region_.buckets()[next];
      if (program && observed != 1)
        for (const SummedRegion::Part& part : region_.parts())
          if (part.is_state && bucket.contains(part.offset))
            for (float& value : SummedRegion::values(buffer, part)) value *= observed;
      if (assembly && assembly->missing[next].fetch_sub(1) == 1) {
        for (const auto& [into, from] : assembly->merges)
          merge(pool, assembly->data[into], assembly->data[from], bucket.offset, bucket.bytes);
        if (assembly->ready) assembly->ready(static_cast<int>(next), assembly->partials());
      }
      ++next;
    }
  };
  if (samples == 0) {
    std::memset(buffer, 0, region_.bytes());
  } else {
    program = programs_.at(samples).get();
    std::unique_ptr<Lane>& found = slot.lanes[samples];
    if (!found)
      found = std::make_unique<Lane>(program->program, parameters_, buffer + kStatisticsBytes);
    memory = found.get();
    memory->bind_gradients(buffer + kStatisticsBytes);
    memory->set_input("x", x);
    memory->set_input("y", y);
    memory->set_input("weight", Tensor::from<float>({}, {weight}));
    Program::RunOptions run;
    run.context = {options_.seed, work.step, lane};
    run.check_numbers = options_.check_numbers;
    run.check_memory = options_.check_memory;
    // While memory is checked, nobody else may touch it: buckets are reported at the end.
    if (!options_.check_memory) run.after_step = report;
    if (timing_) run.timing = [&](const StepTiming& timing) { timing_(lane, timing); };
    program->program.run(*memory, pool, run);
  }
  report(std::numeric_limits<int>::max());
  if (assembly) return;
  // Not the last lane of this slot: whole neighbours that form one node are added at once.
  while (slot.sums.size() > 1) {
    const Slot::Sum right = slot.sums.back(), left = slot.sums[slot.sums.size() - 2];
    const comm::LaneRange both = {left.lanes.first, right.lanes.last};
    if (comm::lane_subtrees(options_.lanes, both).size() != 1 ||
        comm::lane_split(both) != right.lanes.first)
      break;
    merge(pool, left.data, right.data, 0, region_.bytes());
    slot.spare.push_back(right.data);
    slot.sums.pop_back();
    slot.sums.back().lanes = both;
  }
}

void Stepper::compute(const Work& work, const Tensor& x, const Tensor& y, const Ready& ready) {
  buckets(work.batch);
  const comm::LaneRange range = work.range;
  const bool side_by_side = options_.lanes >= options_.threads;
  const int running = side_by_side ? std::min(options_.threads, range.size()) : 1;
  while (static_cast<int>(slots_.size()) < running) slots_.push_back(std::make_unique<Slot>());

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
      run_lane(slot, side_by_side ? slot.serial : *pool_, lane,
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

StepStatistics Stepper::read_statistics(const std::byte* total, int64_t step) const {
  Statistics statistics;
  std::memcpy(&statistics, total, sizeof statistics);
  if (!std::isfinite(statistics.loss))
    fail(ErrorKind::numeric, "[step {}] the loss is {}, expected a finite number: {}", step,
         statistics.loss, suspicion(parameters_));
  return {statistics.loss, static_cast<int64_t>(statistics.correct),
          static_cast<int64_t>(statistics.labels), statistics.stop > 0};
}

StepStatistics Stepper::step(const Tensor& x, const Tensor& y, int64_t step, float learning_rate) {
  std::byte* total = nullptr;
  compute({.range = {0, options_.lanes}, .batch = x.shape()[0], .step = step}, x, y,
          [&](int, const std::vector<std::byte*>& partials) { total = partials.front(); });
  const StepStatistics statistics = read_statistics(total, step);
  const Update::Options update = {.step = step,
                                  .learning_rate = learning_rate,
                                  .gradient_scale = update_.clips() ? update_.clip_scale(total) : 1,
                                  .lanes = options_.lanes};
  for (const Bucket& bucket : region_.buckets()) update_.apply(bucket, total, update);
  return statistics;
}

}  // namespace artel
