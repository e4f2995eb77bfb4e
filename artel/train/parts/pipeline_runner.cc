#include "artel/train/parts/pipeline_runner.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <utility>

#include "artel/base/error.h"
#include "artel/base/text.h"
#include "artel/base/time.h"
#include "artel/nn/distillation.h"
#include "artel/plan/simulate.h"

namespace artel {
namespace {

// Timeout of a message from another stage, in seconds.
constexpr double kPatience = 300;

// The tag of messages outside steps. Tags of lanes are lower.
constexpr uint32_t kParameterTag = (1U << 22) - 1;

std::string_view name_of(plan::Work work) {
  switch (work) {
    case plan::Work::forward:
      return "forward";
    case plan::Work::backward:
      return "backward";
    case plan::Work::input_gradient:
      return "gradient";
    case plan::Work::weight_gradient:
      return "weights";
  }
  return "";
}

bool splits_gradients(const std::string& schedule) {
  const plan::Schedule example =
      plan::make_schedule(schedule, {2, plan::schedule_kind(schedule).several_stages ? 4 : 2, 2});
  return std::any_of(example.tasks[0].begin(), example.tasks[0].end(),
                     [](const plan::Task& t) { return t.work == plan::Work::weight_gradient; });
}

// Earlier pieces do not touch the region of gradients.
size_t first_piece_with_sums(const Plan& plan) {
  for (size_t i = 0; i + 1 < plan.pieces.size(); ++i)
    for (int kernel = plan.pieces[i].begin; kernel < plan.pieces[i].end; ++kernel)
      for (const int output : plan.kernels[kernel].outputs)
        if (plan.buffers[output].region == Region::gradients) return i;
  return plan.pieces.size() - 1;
}

bool all_share_memory(comm::Group& group) {
  const comm::SharedBytes some = group.allocate(64);
  int32_t shares = group.place_of({some.get(), 64}).has_value() ? 1 : 0;
  group.all_reduce(std::as_writable_bytes(std::span(&shares, 1)), comm::ElementType::i32,
                   comm::ReductionKind::min, {.label = "shared memory"});
  return shares != 0;
}

}  // namespace

PipelineRunner::PipelineRunner(Stepper& stepper, comm::Group& group, PipelineCuts cuts, int lanes,
                               std::string name, const MeshCoordinates& at,
                               Stepper::Allocate allocate, Timeline* timeline)
    : stepper_(stepper),
      group_(group),
      cuts_(std::move(cuts)),
      lanes_(lanes),
      name_(std::move(name)),
      at_(at),
      timeline_(timeline),
      splits_(splits_gradients(cuts_.schedule)),
      shares_memory_(all_share_memory(group)),
      sums_(lanes, [this, allocate = std::move(allocate)] {
        return allocate(stepper_.region().bytes());
      }) {
  stepper.set_part(
      [this](Program& program, int64_t samples) { restrict_program(program, samples); });
}

PipelineRunner::~PipelineRunner() {
  release_memory();
  stepper_.set_part({});
}

void PipelineRunner::release_memory() {
  idle_.clear();
  under_way_.clear();
  sums_.release_memory();
}

plan::PipelineShape PipelineRunner::shape(int lanes) const {
  return {group_.size(), static_cast<int>(cuts_.origins.size()), lanes};
}

// A deferred piece runs when, in a simulation, its inputs have been sent and the other pieces of
// its lane are done. Because the simulation terminates, the real order cannot deadlock.
const std::vector<PipelineRunner::Turn>& PipelineRunner::turns(int lanes) {
  std::vector<Turn>& turns = turns_[lanes];
  if (!turns.empty() || lanes == 0) return turns;
  const plan::Schedule schedule = plan::make_schedule(cuts_.schedule, shape(lanes));
  const auto spans = plan::simulate(schedule, plan::PipelineCosts::equal(shape(lanes))).spans;
  const std::vector<plan::TaskSpan>& own = spans[group_.rank()];
  std::vector<double> ready(static_cast<size_t>(lanes), 0);
  const auto wait_for = [&](const plan::TaskSpan& span) {
    ready[span.task.lane] = std::max(ready[span.task.lane], span.end);
  };
  for (const plan::TaskSpan& span : own) wait_for(span);
  for (const plan::StagePiece& needed : deferred_needs_)
    for (const plan::TaskSpan& span : spans[shape(lanes).worker_of(needed.stage)])
      if (span.task.stage == needed.stage && span.task.work == needed.work) wait_for(span);
  const auto add_late = [&](double after, double until) {
    for (int lane = 0; lane < lanes; ++lane)
      if (ready[lane] > after && ready[lane] <= until)
        for (const plan::StagePiece& piece : deferred_) turns.push_back({lane, piece});
  };
  double now = 0;
  for (const plan::TaskSpan& span : own) {
    add_late(std::exchange(now, span.begin), span.begin);
    turns.push_back({span.task.lane, {span.task.stage, span.task.work}});
  }
  add_late(now, std::numeric_limits<double>::infinity());
  return turns;
}

std::string PipelineRunner::stages_name() const {
  std::vector<std::string> numbers;
  for (int stage = group_.rank(); stage < shape(1).stages; stage += group_.size())
    numbers.push_back(std::to_string(stage));
  return (numbers.size() > 1 ? "stages " : "stage ") + join(numbers, " and ");
}

void PipelineRunner::restrict_program(Program& program, int64_t samples) {
  const plan::PipelineShape all = shape(1);
  const bool is_first = places_.empty();
  const plan::Stages stages(program.graph(), program.plan(), cuts_.origins, all, splits_,
                            is_first ? nullptr : &deferred_gradients_);
  if (is_first) find_places(program, stages);
  find_shared(program, stages);
  Part part;
  for (const plan::StagePiece& name : stages.pieces(group_.rank())) {
    Piece piece = {name, {}, {}};
    for (size_t i = 0; i < stages.messages().size(); ++i) {
      const plan::StageMessage& message = stages.messages()[i];
      const auto number = static_cast<int>(i);
      if (message.to == name)
        piece.arrivals.push_back({number, all.worker_of(message.from.stage), message.from.stage,
                                  message.buffers, message.bytes});
      if (message.from == name)
        piece.departures.push_back({number, all.worker_of(message.to.stage), message.to.stage,
                                    message.buffers, message.bytes});
    }
    part.pieces.push_back(std::move(piece));
  }
  program.restrict_to(stages.excerpt(group_.rank()));
  part.sums_from = first_piece_with_sums(program.plan());
  parts_[samples] = std::move(part);
}

void PipelineRunner::find_places(const Program& program, const plan::Stages& stages) {
  const plan::PipelineShape all = shape(1);
  const std::vector<GradientSlot>& slots = program.plan().gradients;
  for (size_t i = 0; i < slots.size(); ++i)
    places_.push_back(
        {program.graph().value(slots[i].value).name, all.worker_of(stages.owners()[i])});
  deferred_gradients_ = stages.deferred_gradients();
  for (const plan::StagePiece& piece : stages.pieces(group_.rank()))
    if (piece.deferred) deferred_.push_back(piece);
  for (const plan::StageMessage& message : stages.messages())
    if (message.to.deferred && all.worker_of(message.to.stage) == group_.rank())
      deferred_needs_.push_back(message.from);
}

void PipelineRunner::find_shared(const Program& program, const plan::Stages& stages) {
  const plan::PipelineShape all = shape(1);
  Parameters& parameters = stepper_.parameters();
  for (const plan::SharedParameter& parameter : stages.shared()) {
    const ValueData& value = program.graph().value(parameter.value);
    Shared& shared = shared_[value.name];
    shared.values =
        parameters.values(parameters.entry(value.whole_name()))
            .subspan(shard_offset(value), static_cast<size_t>(value.type.shape.elements()));
    shared.owner = all.worker_of(parameter.owner);
    for (const int stage : parameter.readers)
      if (const int reader = all.worker_of(stage); reader != shared.owner)
        shared.readers.insert(reader);
  }
}

int64_t PipelineRunner::samples_of(const Stepper::Work& work, int lane) const {
  const auto [begin, end] = Stepper::rows_of_lane(work.batch, lanes_, lane);
  return end - begin;
}

uint32_t PipelineRunner::tag(const Route& route, int lane) const {
  return static_cast<uint32_t>(route.number * lanes_ + lane);
}

size_t PipelineRunner::bytes_on_wire(const Route& route) const {
  return shares_memory_ ? sizeof(uint64_t) : route.bytes;
}

PipelineRunner::Mail& PipelineRunner::mail(std::map<std::pair<int, int>, Mail>& box,
                                           const Route& route, int lane, size_t bytes,
                                           bool shared) {
  Mail& found = box[{route.number, lane}];
  if (!found.memory || found.memory.host().size() != bytes)
    found.memory = {cpu(), shared ? group_.allocate(bytes) : allocate(bytes), bytes};
  return found;
}

// Posts all receives of this step, so that messages can arrive as soon as they are ready.
void PipelineRunner::expect_arrivals(const Stepper::Work& work) {
  for (int lane = work.range.first; lane < work.range.last; ++lane) {
    const int64_t samples = samples_of(work, lane);
    if (samples == 0) continue;
    for (const Piece& piece : parts_.at(samples).pieces)
      for (const Route& route : piece.arrivals) {
        Mail& letter = mail(inbox_, route, lane, bytes_on_wire(route), false);
        letter.handle = group_.receive(route.peer, tag(route, lane), letter.memory.host());
      }
  }
}

std::vector<Memory> PipelineRunner::run(const Stepper::Work& work, const Tensor& x,
                                        const Tensor& y) {
  stepper_.buckets(work.batch);
  share_parameters();
  sums_.clear();
  under_way_.clear();
  expect_arrivals(work);
  for (const Turn& turn : turns(work.range.size())) run_turn(turn, work, x, y);
  for (auto& [key, letter] : outbox_)
    if (letter.handle.valid())
      wait(letter.handle,
           fmt::format("[{}, {}, step {}] sending", name_, stages_name(), work.step));
  if (work.range.size() == 0) return {stepper_.memory_without_lanes()};
  return sums_.partials();
}

void PipelineRunner::run_turn(const Turn& turn, const Stepper::Work& work, const Tensor& x,
                              const Tensor& y) {
  const int number = work.range.first + turn.lane;
  Lane& lane = under_way_[number];
  const plan::StagePiece& name = turn.piece;
  if (name.work == plan::Work::forward && name.stage == group_.rank()) {
    begin_lane(lane, number, work, x, y);
    if (lane.samples == 0) finish_lane(lane, number, work);
  }
  if (lane.samples == 0) return;
  const Part& part = parts_.at(lane.samples);
  const auto piece = std::find_if(part.pieces.begin(), part.pieces.end(),
                                  [&](const Piece& p) { return p.name == name; });
  run_piece(part, static_cast<size_t>(piece - part.pieces.begin()), lane, number, work.step);
  if (std::next(piece) == part.pieces.end()) finish_lane(lane, number, work);
}

void PipelineRunner::run_piece(const Part& part, size_t index, Lane& lane, int number,
                               int64_t step) {
  const Piece& piece = part.pieces[index];
  const std::string_view what = piece.name.deferred ? "tied weights" : name_of(piece.name.work);
  const std::string where = fmt::format("[{}, stage {}, step {}] {} of lane {}", name_,
                                        piece.name.stage, step, what, number);
  at_.stage = piece.name.stage;
  at_.stages = 1;
  group_.set_phase(fmt::format("{}, {}, lane {}", to_string(at_), what, number));
  for (const Route& route : piece.arrivals) receive(route, number, *lane.frame, where);
  if (index == part.sums_from) {
    lane.region = sums_.take();
    lane.frame->bind_gradients(gradients_in(lane.region));
  }
  {
    const Timeline::Scope scope(timeline_, "compute", Timeline::kMain, where);
    const Program& program = lane.frame->program();
    const PlanPiece& kernels = program.plan().pieces[index];
    Program::RunOptions options = stepper_.run_options(step, number);
    options.part = {kernels.begin, kernels.end};
    program.run(*lane.frame, stepper_.pool(), options);
  }
  for (const Route& route : piece.departures) send(route, number, *lane.frame);
}

void PipelineRunner::begin_lane(Lane& lane, int number, const Stepper::Work& work, const Tensor& x,
                                const Tensor& y) {
  lane.samples = samples_of(work, number);
  if (lane.samples == 0) return;
  std::vector<std::unique_ptr<Frame>>& idle = idle_[lane.samples];
  if (idle.empty()) {
    const Memory some = sums_.take();  // until the lane gets its own
    lane.frame = std::make_unique<Frame>(stepper_.program(lane.samples), stepper_.parameters(),
                                         gradients_in(some));
    sums_.give_back(some);
  } else {
    lane.frame = std::move(idle.back());
    idle.pop_back();
  }
  const int64_t begin = Stepper::rows_of_lane(work.batch, lanes_, number).first -
                        Stepper::rows_of_lane(work.batch, lanes_, work.range.first).first;
  lane.frame->set_input("x", x.rows(begin, begin + lane.samples));
  lane.frame->set_input("y", y.rows(begin, begin + lane.samples));
  if (work.teacher)
    lane.frame->set_input(nn::kTeacherInput, work.teacher->rows(begin, begin + lane.samples));
  const float weight = static_cast<float>(lane.samples) / static_cast<float>(work.batch);
  lane.frame->set_input("weight", Tensor::from<float>({}, {weight}));
}

Memory PipelineRunner::gradients_in(const Memory& region) const {
  const size_t begin = stepper_.region().statistics_bytes();
  return region.part(begin, stepper_.region().bytes() - begin);
}

void PipelineRunner::finish_lane(Lane& lane, int number, const Stepper::Work& work) {
  const SummedRegion& sums = stepper_.region();
  if (!lane.frame) lane.region = sums_.take();
  const size_t unwritten = lane.frame ? sums.statistics_bytes() : sums.bytes();
  std::ranges::fill(lane.region.part(0, unwritten).floats(), 0.0f);
  stepper_.write_statistics(lane.frame.get(), number, lane.samples, work, lane.region.floats());
  if (const float scale = stepper_.observation_scale(work); lane.frame && scale != 1)
    for (const SummedRegion::Part& part : sums.parts())
      if (part.is_state)
        for (float& value : SummedRegion::values(lane.region, part)) value *= scale;
  sums_.add(number, std::move(lane.region), stepper_.pool());
  if (lane.frame) idle_[lane.samples].push_back(std::move(lane.frame));
}

void PipelineRunner::wait(comm::Handle& handle, const std::string& where) {
  const Timeline::Scope scope(timeline_, "wait", Timeline::kMain, "stages");
  const Clock::time_point begin = Clock::now();
  try {
    handle.wait(Deadline::after(kPatience));
  } catch (const Error& error) {
    throw Error(error.kind(), fmt::format("{}: {}", where, error.what()));
  }
  waited_seconds_ += seconds_between(begin, Clock::now());
}

void PipelineRunner::receive(const Route& route, int lane, const Frame& frame,
                             const std::string& where) {
  Mail& letter = inbox_.at({route.number, lane});
  wait(letter.handle, fmt::format("{} waits for stage {}", where, route.stage));
  const std::byte* from = letter.memory.host().data();
  if (shares_memory_) {
    uint64_t place = 0;
    std::memcpy(&place, from, sizeof place);
    from = group_.at_place(place, route.bytes);
    require(from != nullptr, ErrorKind::corrupt,
            "{}: stage {} sent an address outside the shared memory", where, route.stage);
    group_.count_in_place(route.peer, 0, route.bytes);
  }
  for (const int id : route.buffers) {
    const std::span<std::byte> buffer = frame.buffer(id);
    std::memcpy(buffer.data(), from, buffer.size());
    from += buffer.size();
  }
}

// The copy stays unchanged until all workers have finished the step.
void PipelineRunner::send(const Route& route, int lane, const Frame& frame) {
  Mail& letter = mail(outbox_, route, lane, route.bytes + sizeof(uint64_t), shares_memory_);
  const std::span<std::byte> memory = letter.memory.host();
  std::byte* to = memory.data();
  for (const int id : route.buffers) {
    const std::span<std::byte> buffer = frame.buffer(id);
    std::memcpy(to, buffer.data(), buffer.size());
    to += buffer.size();
  }
  std::span<const std::byte> sent = memory.first(route.bytes);
  if (shares_memory_) {
    const uint64_t place = group_.place_of(sent).value();
    std::memcpy(to, &place, sizeof place);
    sent = memory.subspan(route.bytes);
    group_.count_in_place(route.peer, route.bytes, 0);
  }
  letter.handle = group_.send(route.peer, tag(route, lane), sent);
}

void PipelineRunner::share_parameters() {
  std::vector<comm::Handle> handles;
  for (const auto& [name, shared] : shared_)
    for (const int reader : shared.readers) {
      const auto bytes = std::as_writable_bytes(shared.values);
      if (group_.rank() == shared.owner)
        handles.push_back(group_.send(reader, kParameterTag, bytes));
      if (group_.rank() == reader)
        handles.push_back(group_.receive(shared.owner, kParameterTag, bytes));
    }
  for (comm::Handle& handle : handles)
    wait(handle, fmt::format("[{}, {}] shared parameters", name_, stages_name()));
}

}  // namespace artel
