#include "artel/train/step/stepper.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <optional>
#include <set>

#include "artel/base/error.h"
#include "artel/base/pages.h"
#include "artel/exec/libraries.h"
#include "artel/exec/step_memory.h"
#include "artel/exec/sums.h"
#include "artel/nn/distillation.h"
#include "artel/optim/clipping.h"
#include "artel/predict/batches.h"

namespace artel {
namespace {

// The likely cause of a loss that is not finite. Enormous weights come from steps that were too
// large, nothing else does.
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

// The memory for one group of lanes at a time, and the sums of its finished groups.
struct Stepper::Slot {
  ThreadPool serial{1, limit_library_threads};
  ShardExchange* shards = nullptr;
  struct Place {
    // By program and workspaces.
    std::map<std::pair<const Compiled*, Workspaces>, std::unique_ptr<Frame>> frames;
    // The region of a lane that is not the first of a sum. Kernels never write their sums there, so
    // those pages take no memory.
    Memory own;
  };
  std::vector<Place> places;  // by lane of a group
  struct Sum {
    comm::LaneRange lanes;
    Memory data;
    Memory on_device = {};  // the gradients, if the device adds them
  };
  std::vector<Sum> sums;
  std::vector<Memory> spare, spare_on_device;

  void recycle(const Sum& sum) {
    spare.push_back(sum.data);
    if (sum.on_device) spare_on_device.push_back(sum.on_device);
  }
  void recycle_all() {
    for (const Sum& sum : std::exchange(sums, {})) recycle(sum);
  }
};

// A group of lanes that runs in a slot.
struct Stepper::Group {
  ThreadPool& pool;
  comm::LaneRange lanes;
  std::vector<Memory> regions;  // by lane; the first of a subtree receives its sum
  std::vector<Program::Lane> running;
  std::vector<LaneSubtree> subtrees;
  const Compiled* program = nullptr;  // of the largest lane; null for an empty lane

  // Adds up a range of the regions of each subtree.
  void add(size_t offset, size_t bytes) const {
    for (const LaneSubtree& subtree : subtrees) {
      std::vector<size_t> stack;
      for (size_t i = 0; i < subtree.merges.size(); ++i) {
        stack.push_back(subtree.first + i);
        for (int merge = 0; merge < subtree.merges[i]; ++merge) {
          const size_t from = stack.back();
          stack.pop_back();
          add_into(pool, regions[from].part(offset, bytes),
                   regions[stack.back()].part(offset, bytes));
        }
      }
    }
  }
};

// Combines the sums of all slots into the worker's partial sums, bucket by bucket. Each slot's last
// group reports its buckets, and the slot that reports a bucket last adds it up.
struct Stepper::Assembly {
  std::vector<comm::LaneRange> entries;
  std::vector<Memory> data;                 // of each entry, set as lanes begin
  std::vector<Memory> on_device;            // the same for Slot::Sum::on_device
  std::vector<std::pair<int, int>> merges;  // (into, from)
  std::vector<int> survivors;
  std::vector<std::atomic<int>> missing;  // by bucket: slots that have not reported it
  const Ready& ready;

  Assembly(int lanes, std::vector<comm::LaneRange> ranges, size_t buckets, int slots,
           const Ready& ready)
      : entries(std::move(ranges)),
        data(entries.size()),
        on_device(entries.size()),
        missing(buckets),
        ready(ready) {
    for (auto& count : missing) count = slots;
    std::vector<comm::LaneRange> now = entries;
    for (size_t i = 0; i < now.size(); ++i) survivors.push_back(static_cast<int>(i));
    // Adds neighbours that are the two halves of a node of the tree, until none are left.
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
      part_(ShardPart::all(options_.shards)),
      own_lanes_(options_.lanes) {
  update_.keep_zeros(options_.keep_zeros);
}

Stepper::~Stepper() = default;

void Stepper::set_sum_memory(Allocate allocate) {
  for (const auto& slot : slots_) {
    slot->sums.clear();
    slot->spare.clear();
    slot->spare_on_device.clear();
  }
  const MutexLock lock(allocate_mutex_);
  allocate_sums_ = std::move(allocate);
}

void Stepper::drop_programs() {
  slots_.clear();  // their frames belong to the programs
  programs_.clear();
  matches_.clear();
  region_ = {};
  sums_per_lane_ = 0;
  recomputed_ = {};  // other parts of the network recompute other values
}

// Stages and shards pass values on in the processor's memory.
void Stepper::require_whole_network() const {
  require(!on_device(), ErrorKind::unsupported,
          "{} runs whole networks only, but a mesh cuts this one; set cluster.device = \"cpu\", or "
          "a strategy without pipeline and tensor groups",
          choices_.device->name());
}

void Stepper::set_part(Restrict restrict_program) {
  if (restrict_program) require_whole_network();
  drop_programs();
  restrict_ = std::move(restrict_program);
}

Stepper::Crowding Stepper::crowding(int own_lanes) const {
  const int groups =
      restrict_ || on_device() ? 1 : side_by_side(own_lanes, options_.threads, sums_per_lane_);
  return {groups, options_.threads / groups};
}

void Stepper::set_most_crowded(const Crowding& most) {
  if (options_.memory_limit == 0 || most == most_) return;
  most_ = most;
  slots_.clear();
  programs_.clear();
  matches_.clear();
  recomputed_ = {};
}

void Stepper::set_shards(const ShardPart& part, Exchanges exchange) {
  if (!part.whole()) require_whole_network();
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

void Stepper::write_statistics(const Frame* frame, int lane, int64_t samples, const Work& work,
                               std::span<float> statistics) const {
  statistics[SummedRegion::kStop] = work.stop ? 1 : 0;
  statistics[SummedRegion::kTrace] = work.trace ? 1 : 0;
  statistics[SummedRegion::kNewcomers] = work.newcomers ? 1 : 0;
  statistics[SummedRegion::kLeaves] = work.leaves ? 1 : 0;
  if (!frame) return;
  const Program& program = frame->program();
  const auto count = static_cast<float>(samples);
  if (program.computes("loss")) {
    statistics[SummedRegion::kLoss] = frame->scalar("loss") * count;
    statistics[SummedRegion::kSamples] = count;
    if (!region_.weighted()) statistics[SummedRegion::kWeight] = count;
  }
  // Another stage of a pipeline may compute the weight.
  if (region_.weighted() && program.computes("loss_weight"))
    statistics[SummedRegion::kWeight] = frame->scalar("loss_weight") * count;
  region_.write_metrics(*frame, lane, statistics);
}

void Stepper::release_memory() {
  for (const auto& slot : slots_) {
    slot->places.clear();
    for (Slot::Sum& sum : slot->sums) {
      forget(sum.data.host());
      sum.on_device = {};
    }
    slot->spare_on_device.clear();
    for (const Memory& memory : slot->spare) forget(memory.host());
  }
}

Graph Stepper::graph(int64_t lane_batch, const ShardPart& part) const {
  return training_graph(model_, batch_of(x_, lane_batch), batch_of(y_, lane_batch), loss_,
                        options_.trained, options_.metrics, part, lanes_together(),
                        recomputes_batch_norms_)
      .graph;
}

Stepper::Compiled& Stepper::compiled(int64_t lane_batch) {
  std::unique_ptr<Compiled>& found = programs_[{lane_batch, threads_each()}];
  if (!found) {
    // If a lane does not fit alone with room for kernels that run several lanes, its program is
    // compiled without that room and recomputes values if it still does not fit.
    // A limit of 0 would mean no limit.
    const size_t limit =
        options_.memory_limit == 0
            ? 0
            : std::max<size_t>(1, options_.memory_limit / static_cast<size_t>(slots()));
    CompileOptions options = {.threads = threads_each(),
                              .lanes = {options_.lanes, lanes_together()}};
    const auto compile = [&](const CompileOptions& wanted) {
      Graph lowered = graph(lane_batch);
      if (!recomputes_batch_norms_) recomputes_batch_norms_ = recomputes_batch_norms(lowered);
      return Program(std::move(lowered), wanted, choices_);
    };
    if (limit > 0 && !recomputed_ && most_.groups > 0 && most_ != crowding(own_lanes_)) {
      CompileOptions most = options;
      most.threads = most_.threads;
      most.lanes.together = 1;
      most.memory_limit =
          std::max<size_t>(1, options_.memory_limit / static_cast<size_t>(most_.groups));
      recomputed_ = compile(most).recomputed();
    }
    if (limit == 0 || !restrict_) found.reset(new Compiled{compile(options), {}});
    if (limit > 0 && (!found || found->program.plan().activation_bytes > limit || recomputed_)) {
      options.memory_limit = limit;
      options.recompute = recomputed_;
      options.lanes.together = 1;
      found.reset();
      found.reset(new Compiled{compile(options), {}, true});
    }
    if (found->program.recomputed()) recomputed_ = found->program.recomputed();
    if (restrict_) restrict_(found->program, lane_batch);
    if (region_.empty()) {
      region_ =
          SummedRegion(found->program, options_.metrics, options_.lanes, options_.bucket_bytes);
      update_.bind(region_);
      // Keeps groups on which memory limits or other workers depend.
      const int threads = threads_each();
      if (limit == 0 && !restrict_ && !exchanges_) sums_per_lane_ = sums_per_lane(found->program);
      if (threads_each() != threads) {
        programs_.erase({lane_batch, threads});
        return compiled(lane_batch);
      }
    }
    region_.check(found->program);
    found->ready = region_.ready_kernels(found->program);
  }
  return *found;
}

void Stepper::set_bucket_bytes(size_t bytes) {
  options_.bucket_bytes = bytes;
  if (region_.empty()) return;
  region_.cut(bytes);
  for (const auto& [key, each] : programs_)
    if (each) each->ready = region_.ready_kernels(each->program);
}

const std::vector<Bucket>& Stepper::buckets(int64_t batch) {
  // Largest lanes first: they determine the recomputation of all.
  std::set<int64_t, std::greater<>> sizes;
  for (int lane = 0; lane < options_.lanes; ++lane) {
    const auto [begin, end] = rows_of_lane(batch, options_.lanes, lane);
    if (end > begin) sizes.insert(end - begin);
  }
  // A limit that suffices for smaller lanes may not suffice for larger ones. The error reports the
  // largest need.
  std::optional<MemoryLimitError> most;
  for (const int64_t size : sizes) {
    try {
      compiled(size);
    } catch (const MemoryLimitError& error) {
      if (!most || error.needed() > most->needed()) most = error;
      programs_.erase({size, threads_each()});
    }
  }
  if (most)
    throw MemoryLimitError(options_.memory_limit, static_cast<size_t>(slots()) * most->needed());
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
    const MutexLock lock(allocate_mutex_);
    return allocate_sums_(region_.bytes());
  }
  Memory buffer = std::move(slot.spare.back());
  slot.spare.pop_back();
  return buffer;
}

Memory Stepper::take_device_buffer(Slot& slot) {
  if (slot.spare_on_device.empty())
    return choices_.device->allocate(region_.bytes() - region_.statistics_bytes());
  Memory buffer = std::move(slot.spare_on_device.back());
  slot.spare_on_device.pop_back();
  return buffer;
}

// Scaled observations and the gradient noise need the sums of each lane.
bool Stepper::sums_on_device(const Work& work) const {
  if (!on_device() || !work.noise.empty() || work.batch < options_.lanes ||
      observation_scale(work) != 1)
    return false;
  const DeviceTraits* const traits = find_traits(*choices_.device);
  return traits && traits->change_layout && traits->add && traits->adds_exactly &&
         traits->adds_exactly(*choices_.device);
}

// The lanes of a group form one subtree, or a few.
int Stepper::most_together(const Work& work) {
  if (!work.noise.empty() || options_.check_memory || on_device()) return 1;
  if (options_.lanes_together > 0) return options_.lanes_together;
  if (options_.memory_limit == 0) return options_.lanes;
  // Other workers of a tensor group may have other limits.
  if (exchanges_) return progress_callback_ ? options_.lanes : 1;
  if (keeps_together_) return options_.lanes;
  const Compiled& largest = compiled((work.batch + options_.lanes - 1) / options_.lanes);
  if (largest.alone) return 1;
  // The first lane has workspaces for all.
  const size_t first = largest.program.plan().activation_bytes;
  const size_t further = std::max<size_t>(1, largest.program.bytes_without_workspaces());
  const size_t limit = options_.memory_limit / static_cast<size_t>(slots());
  const size_t fit = 1 + (limit > first ? (limit - first) / further : 0);
  return static_cast<int>(std::clamp<size_t>(std::bit_floor(fit), 1, options_.lanes));
}

bool Stepper::match(int64_t samples, int64_t others) {
  const std::pair<int64_t, int64_t> key = std::minmax(samples, others);
  const auto found = matches_.find(key);
  if (found != matches_.end()) return found->second;
  return matches_[key] = samples > 0 && others > 0 &&
                         Program::match(compiled(samples).program, compiled(others).program);
}

std::vector<comm::LaneRange> Stepper::groups(comm::LaneRange lanes, const Work& work) {
  const auto samples = [&](int lane) {
    const auto [begin, end] = rows_of_lane(work.batch, options_.lanes, lane);
    return end - begin;
  };
  const int most = most_together(work);
  std::vector<comm::LaneRange> all;
  for (int lane = lanes.first; lane < lanes.last; ++lane) {
    if (!all.empty() && all.back().size() < most && match(samples(all.back().first), samples(lane)))
      ++all.back().last;
    else
      all.push_back({lane, lane + 1});
  }
  return all;
}

void Stepper::report(Group& group, size_t number, const Work& work, Assembly* assembly) {
  const Bucket& bucket = region_.buckets()[number];
  if (number == 0) {
    for (size_t i = 0; i < group.regions.size(); ++i) {
      const bool runs = i < group.running.size();
      write_statistics(runs ? &group.running[i].frame : nullptr,
                       group.lanes.first + static_cast<int>(i), runs ? group.running[i].samples : 0,
                       work, group.regions[i].floats());
    }
    if (group.program && !work.noise.empty())
      work.noise[static_cast<size_t>(group.lanes.first)].weight =
          group.regions[0].floats()[SummedRegion::kWeight];
    group.add(0, region_.statistics_bytes());
  }
  const float observed = observation_scale(work);
  for (size_t i = 0; group.program && i < region_.parts().size(); ++i) {
    const SummedRegion::Part& part = region_.parts()[i];
    if (!bucket.contains(part.offset)) continue;
    if (part.is_state && observed != 1)
      for (const Memory& region : group.regions)
        for (float& value : SummedRegion::values(region, part)) value *= observed;
    if (!part.is_state && !work.noise.empty())
      work.noise[static_cast<size_t>(group.lanes.first)].squares +=
          optim::sum_of_squares(group.pool, SummedRegion::values(group.regions[0], part));
    if (!group.program->program.plan().gradients[i].only_sum) group.add(part.offset, part.bytes);
  }
  if (!assembly || assembly->missing[number].fetch_sub(1) > 1) return;
  // The device has added all gradients, but not the statistics at the beginning.
  const bool gradients_added = assembly->on_device.front().operator bool();
  const size_t first_bytes = number == 0 ? region_.statistics_bytes() : 0;
  const size_t bytes = gradients_added ? first_bytes : bucket.bytes;
  for (const auto& [into, from] : assembly->merges) {
    const Memory added = assembly->data[from].part(bucket.offset, bytes);
    add_into(group.pool, added, assembly->data[into].part(bucket.offset, bytes));
    // Otherwise each concurrent group would hold a whole region at the end of the step.
    if (slots() > 1) forget(added.host());
  }
  if (assembly->ready) assembly->ready(static_cast<int>(number), assembly->partials());
}

// Adds the gradients of all entries on the device, and copies the sums to the entries' data.
void Stepper::read_device_sums(Assembly& assembly) const {
  Device& device = *choices_.device;
  for (const auto& [into, from] : assembly.merges)
    find_traits(device)->add(assembly.on_device[from], assembly.on_device[into]);
  for (const int survivor : assembly.survivors) {
    const Memory& sums = assembly.on_device[survivor];
    device.read(sums.address(),
                assembly.data[survivor].part(region_.statistics_bytes(), sums.bytes()).address(),
                sums.bytes());
  }
}

void Stepper::run_group(Slot& slot, ThreadPool& pool, comm::LaneRange lanes, GroupProgress progress,
                        const Tensor& x, const Tensor& y, const Work& work, Assembly* assembly) {
  Group group{pool, lanes, {}, {}, {}};
  const bool device_sums = sums_on_device(work);
  while (static_cast<int>(slot.places.size()) < lanes.size()) slot.places.emplace_back();
  const std::vector<comm::LaneRange> subtrees = comm::lane_subtrees(options_.lanes, lanes);
  for (const comm::LaneRange& subtree : subtrees) {
    slot.sums.push_back({subtree, take_buffer(slot)});
    if (device_sums) slot.sums.back().on_device = take_device_buffer(slot);
    group.subtrees.push_back({subtree.first - lanes.first, comm::lane_merges(subtree)});
    group.regions.push_back(slot.sums.back().data);
    for (int lane = subtree.first + 1; lane < subtree.last; ++lane) {
      Memory& own = slot.places[lane - lanes.first].own;
      if (!own) {
        own = cpu().allocate(region_.bytes());
        leave_out(own.host());
      }
      group.regions.push_back(own);
    }
  }
  if (assembly)
    for (const Slot::Sum& sum : slot.sums)
      for (size_t i = 0; i < assembly->entries.size(); ++i)
        if (assembly->entries[i] == sum.lanes) {
          assembly->data[i] = sum.data;
          assembly->on_device[i] = sum.on_device;
        }

  // First rows of the group, to which `x` and `y` belong, and of the range, to which the teacher's
  // outputs belong.
  const int64_t first_row = rows_of_lane(work.batch, options_.lanes, lanes.first).first;
  const int64_t range_row = rows_of_lane(work.batch, options_.lanes, work.range.first).first;
  const auto program_of = [&](int64_t samples) {
    return programs_.at({samples, threads_each()}).get();
  };
  for (int lane = lanes.first; lane < lanes.last; ++lane) {
    const auto [begin, end] = rows_of_lane(work.batch, options_.lanes, lane);
    if (end - begin <= progress.samples) continue;
    progress.samples = end - begin;
    group.program = program_of(progress.samples);
  }
  bool lends = false;  // the first of the largest lanes has come
  for (int lane = lanes.first; lane < lanes.last; ++lane) {
    const auto [begin, end] = rows_of_lane(work.batch, options_.lanes, lane);
    const int64_t samples = end - begin;
    const Memory& region = group.regions[lane - lanes.first];
    if (samples == 0) {
      std::ranges::fill(region.floats(), 0.0f);
      continue;
    }
    const Compiled* program = program_of(samples);
    const bool is_first = samples == progress.samples && !std::exchange(lends, true);
    const Workspaces workspaces =
        is_first || program->alone || !Program::lends(group.program->program, program->program)
            ? Workspaces::own
            : Workspaces::borrowed;
    const Memory gradients =
        region.part(region_.statistics_bytes(), region_.bytes() - region_.statistics_bytes());
    std::unique_ptr<Frame>& frame = slot.places[lane - lanes.first].frames[{program, workspaces}];
    if (!frame)
      frame =
          std::make_unique<Frame>(program->program, parameters_, gradients, nullptr, workspaces);
    frame->bind_gradients(gradients);
    if (device_sums) frame->bind_gradients(slot.sums.back().on_device);
    frame->set_input("x", x.rows(begin - first_row, end - first_row));
    frame->set_input("y", y.rows(begin - first_row, end - first_row));
    if (work.teacher)
      frame->set_input(nn::kTeacherInput, work.teacher->rows(begin - range_row, end - range_row));
    frame->set_input("weight", Tensor::from<float>({}, {static_cast<float>(samples) /
                                                        static_cast<float>(work.batch)}));
    StepContext context = run_options(work.step, lane).context;
    context.shards = slot.shards;
    group.running.push_back({*frame, context, samples});
  }

  size_t next = 0;
  const auto report_until = [&](int kernel) {
    while (next < region_.buckets().size() &&
           (!group.program || group.program->ready[next] <= kernel))
      report(group, next++, work, assembly);
  };
  const auto pass = [&](int kernel) {
    progress.kernel = kernel;
    if (progress_callback_) progress_callback_(progress);
  };
  pass(0);
  if (group.program) {
    Program::RunOptions run = run_options(work.step, lanes.first);
    run.context.shards = slot.shards;
    run.leaves_gradients = device_sums;
    // While memory is checked, no other thread may touch it, so buckets are reported at the end.
    // Gradients of a device arrive at the end.
    run.after_kernel = [&](int kernel) {
      if (!options_.check_memory && !on_device()) report_until(kernel);
      pass(kernel + 1);
    };
    if (group.running.size() == 1)
      group.program->program.run(group.running[0].frame, pool, run);
    else
      Program::run_lanes(group.running, group.subtrees, pool, run);
  }
  if (device_sums && assembly) read_device_sums(*assembly);
  report_until(std::numeric_limits<int>::max());
  if (assembly) return;
  // Another group follows in this slot, so neighbours that form one node are added at once.
  for (size_t i = 1; i < slot.sums.size();) {
    Slot::Sum &left = slot.sums[i - 1], &right = slot.sums[i];
    if (!comm::are_halves(options_.lanes, left.lanes, right.lanes)) {
      ++i;
      continue;
    }
    if (device_sums) find_traits(*choices_.device)->add(right.on_device, left.on_device);
    const size_t bytes = device_sums ? region_.statistics_bytes() : region_.bytes();
    add_into(pool, right.data.part(0, bytes), left.data.part(0, bytes));
    left.lanes.last = right.lanes.last;
    slot.recycle(right);
    slot.sums.erase(slot.sums.begin() + static_cast<std::ptrdiff_t>(i));
    i = std::max<size_t>(1, i - 1);
  }
}

int Stepper::side_by_side(int own_lanes, int threads, double sums_per_lane) {
  const int most = (own_lanes + threads - 1) / threads;  // lanes per group
  const int groups = std::clamp(own_lanes, 1, threads);
  const bool wastes_time = 4 * most * threads > 5 * own_lanes;
  const bool wastes_memory = 5 * (groups - 1) * sums_per_lane > own_lanes;
  return wastes_time || wastes_memory ? 1 : groups;
}

double Stepper::sums_per_lane(const Program& program) {
  const StepMemory lane = step_memory(program);
  return static_cast<double>(lane.gradients) /
         static_cast<double>(std::max<size_t>(1, lane.borrowing));
}

int Stepper::sums_in_memory(int own_lanes, int threads, double sums_per_lane) {
  const int running = side_by_side(own_lanes, threads, sums_per_lane);
  size_t all = 0;
  for (int i = 0; i < running; ++i)
    all += comm::lane_subtrees(own_lanes, comm::even_lanes(own_lanes, running, i)).size();
  return static_cast<int>(all);
}

// If the number of lanes has changed since the last step, threads may start or stop sharing groups.
void Stepper::divide_threads(int own_lanes) {
  const int before = slots();
  own_lanes_ = own_lanes;
  if (slots() != before)
    for (const auto& slot : slots_) slot->places.clear();
  while (static_cast<int>(slots_.size()) < slots()) {
    slots_.push_back(std::make_unique<Slot>());
    if (exchanges_) slots_.back()->shards = exchanges_(static_cast<int>(slots_.size()) - 1);
  }
}

void Stepper::compute(const Work& work, const Tensor& x, const Tensor& y, const Ready& ready) {
  const comm::LaneRange range = work.range;
  parameters_.touch();  // strategies keep spans of them
  if (range.size() > 0) divide_threads(range.size());
  buckets(work.batch);
  if (range.size() == 0) return;
  const int running = slots();

  std::vector<comm::LaneRange> entries;
  std::vector<std::vector<comm::LaneRange>> own;  // groups of each slot
  const auto append = [&](comm::LaneRange lanes) {
    for (const comm::LaneRange& node : comm::lane_subtrees(options_.lanes, lanes))
      entries.push_back(node);
  };
  for (int i = 0; i < running; ++i) {
    const comm::LaneRange part = comm::even_lanes(range.size(), running, i);
    own.push_back(groups({range.first + part.first, range.first + part.last}, work));
    if (own.back().size() > 1) append({own.back().front().first, own.back().back().first});
    append(own.back().back());
  }
  Assembly assembly(options_.lanes, std::move(entries), region_.buckets().size(), running, ready);
  const int64_t first_row = rows_of_lane(work.batch, options_.lanes, range.first).first;
  const auto run_slot = [&](int64_t index) {
    Slot& slot = *slots_[index];
    slot.recycle_all();
    for (const comm::LaneRange& lanes : own[index]) {
      const int64_t begin = rows_of_lane(work.batch, options_.lanes, lanes.first).first - first_row;
      const int64_t end = rows_of_lane(work.batch, options_.lanes, lanes.last).first - first_row;
      const bool last = lanes == own[index].back();
      run_group(slot, running > 1 ? slot.serial : *pool_, lanes, {.threads = running, .last = last},
                x.rows(begin, end), y.rows(begin, end), work, last ? &assembly : nullptr);
    }
  };
  if (running > 1)
    pool_->run(running, run_slot);
  else
    run_slot(0);
}

Memory Stepper::memory_without_lanes() {
  if (slots_.empty()) slots_.push_back(std::make_unique<Slot>());
  Slot& slot = *slots_.front();
  slot.recycle_all();
  slot.sums.push_back({{0, 0}, take_buffer(slot)});
  return slot.sums.front().data;
}

StepStatistics Stepper::read_statistics(std::span<const float> statistics, int64_t step) const {
  const float loss = statistics[SummedRegion::kLoss], weight = statistics[SummedRegion::kWeight];
  if (!std::isfinite(loss) || !std::isfinite(weight))
    fail(ErrorKind::numeric, "[step {}] the loss is {}, expected a finite number: {}", step,
         std::isnan(loss) ? std::fabs(loss) : loss,  // the sign of "-nan" is meaningless
         suspicion(parameters_));
  return {.weighted_loss = loss,
          .weight = weight,
          .samples = statistics[SummedRegion::kSamples],
          .sums = region_.read_metrics(statistics),
          .stop = statistics[SummedRegion::kStop] > 0,
          .trace = statistics[SummedRegion::kTrace] > 0,
          .newcomers = statistics[SummedRegion::kNewcomers] > 0,
          .leaves = statistics[SummedRegion::kLeaves] > 0};
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
