#include "artel/train/strategies/remote_parameters.h"

#include <algorithm>
#include <cstring>
#include <numeric>

#include "artel/base/log.h"
#include "artel/ps/rules/rule.h"
#include "artel/train/loop/agreement.h"
#include "artel/train/step/touched_rows.h"

namespace artel {
namespace {

std::vector<ps::Segment> segments_of(size_t statistics, const std::vector<Update::Target>& parts,
                                     bool side_by_side) {
  std::vector<ps::Segment> segments = {
      {.name = "loss and counts", .keys = {0, statistics}, .kind = ps::SegmentKind::sum}};
  for (const Update::Target& part : parts) {
    const uint64_t first = side_by_side ? segments.back().keys.last : part.offset / sizeof(float);
    segments.push_back({.name = part.name,
                        .keys = {first, first + part.values.size()},
                        .kind = part.is_state ? ps::SegmentKind::average : ps::SegmentKind::weight,
                        .decays = part.decays,
                        .momentum = part.momentum});
  }
  return segments;
}

ps::ShardMap shards_of(uint64_t keys, const std::vector<ps::Segment>& segments,
                       const RemoteOptions& options, bool whole_segments) {
  if (!whole_segments && !ps::make_rule(options.rule)->needs_whole_segments())
    return ps::ShardMap::even(keys, options.servers);
  std::vector<uint64_t> cuts;
  for (const ps::Segment& segment : segments) cuts.push_back(segment.keys.first);
  return ps::ShardMap::between(keys, options.servers, cuts);
}

// Adds up the partial sums of some keys, in the first of them.
void add_here(const std::vector<Memory>& partials, const ps::KeyRange& keys) {
  for (size_t p = 1; p < partials.size(); ++p)
    for (uint64_t key = keys.first; key < keys.last; ++key)
      partials[0].floats()[key] += partials[p].floats()[key];
}

}  // namespace

RemoteParameters::RemoteParameters(const Membership& membership, Stepper& stepper, int64_t batch,
                                   const RemoteOptions& options)
    : membership_(membership),
      stepper_(stepper),
      options_(options),
      buckets_(stepper.buckets(batch)),
      parts_(stepper.update().targets()),
      statistics_(stepper.region().statistics_bytes() / sizeof(float)),
      segments_(segments_of(statistics_.size(), parts_, !options.compress.empty())),
      client_(membership.world, membership.size(),
              shards_of(keys_of(buckets_.back()).last, segments_, options, holds_back()),
              options.seed),
      states_(static_cast<int>(ps::make_rule(options.rule)->states().size())) {
  client_.set_codec(options.compress);
  if (!options.compress.empty()) {
    lost_.resize(client_.map().keys());
    by_key_.resize(client_.map().keys());
  }
  if (options.push_every > 1) {
    const size_t bytes = client_.map().keys() * sizeof(float);
    accrued_ = {cpu(), membership_.world->allocate(bytes), bytes};
  }
}

ps::KeyRange RemoteParameters::keys_of(const Bucket& bucket) const {
  const size_t end = bucket.offset + bucket.bytes;
  if (options_.compress.empty()) return {bucket.offset / sizeof(float), end / sizeof(float)};
  ps::KeyRange keys = {0, bucket.offset == 0 ? statistics_.size() : 0};
  for (size_t i = 0; i < parts_.size(); ++i) {
    if (!bucket.contains(parts_[i].offset)) continue;
    if (keys.last == 0) keys.first = segments_[i + 1].keys.first;
    keys.last = segments_[i + 1].keys.last;
  }
  return keys;
}

float* RemoteParameters::by_key(const Memory& region, const ps::KeyRange& keys) {
  if (options_.compress.empty()) return region.floats().data();
  for (size_t i = 0; i < segments_.size(); ++i) {
    const ps::KeyRange& own = segments_[i].keys;
    const size_t offset = i > 0 ? parts_[i - 1].offset : 0;
    if (keys.contains(own))
      std::ranges::copy(region.part(offset, own.size() * sizeof(float)).floats(),
                        by_key_.begin() + static_cast<std::ptrdiff_t>(own.first));
  }
  return by_key_.data();
}

void RemoteParameters::begin(bool together, int64_t steps, int64_t updates) {
  comm::Group& workers = *membership_.group;
  together_ = together;
  pushed_ = steps;
  std::vector<int64_t> finished(static_cast<size_t>(workers.size()));
  workers.all_gather(std::as_bytes(std::span(&pushed_, 1)),
                     std::as_writable_bytes(std::span(finished)), {}, {.label = "pushes"});
  first_step_of_all_ = *std::ranges::max_element(finished);
  if (!placed_) place_ranges();
  if (client_.worker() == 0) {
    std::vector<ps::Setup::Worker> each;
    for (size_t rank = 0; rank < membership_.members.size(); ++rank)
      each.push_back({membership_.members[rank].number, finished[rank]});
    // With a codec, each worker's sums are one message, so workers take the place of lanes.
    const bool by_worker = together && !options_.compress.empty();
    client_.set_up({.segments = segments_,
                    .rule = options_.rule,
                    .together = together,
                    .lanes = by_worker ? workers.size() : stepper_.lanes(),
                    .observations = stepper_.lanes(),
                    .delay = together ? 0 : options_.delay,
                    .finished = pushed_,
                    .updates = updates,
                    .workers = each,
                    .compress = options_.compress});
    if (!assigned_) assign_all();
  }
  workers.barrier({.label = "servers are ready"});
  client_.set_version(static_cast<uint64_t>(finished.front()));
  // Coded answers are changes to a worker's full values. No worker pushes before all have them.
  if (assigned_ && !options_.compress.empty()) {
    fetch();
    workers.barrier({.label = "values of servers"});
  }
  assigned_ = true;
  awaited_.reset();
  if (together || !options_.delay) return;
  // A worker may be as far ahead as allowed, and have seen a push of the slowest worker that will
  // be repeated. It waits for that push before its own next one.
  const int64_t needed = pushed_ - std::max<int64_t>(1, *options_.delay) + 1;
  if (needed > *std::ranges::min_element(finished)) awaited_ = needed;
}

// Worker 0 finds out which servers have which key ranges and tells the other workers.
void RemoteParameters::place_ranges() {
  std::string text;
  if (client_.worker() == 0) {
    const std::vector<ps::Placement> places = client_.place(options_.replicas);
    text = ps::to_text(places);
    const bool copied =
        std::ranges::all_of(places, [](const ps::Placement& place) { return place.backup >= 0; });
    if (options_.replicas > 1 && !copied)
      log(LogLevel::warning,
          "only one server remains; the weights have no copy until another one joins "
          "(cluster.replicas)");
  }
  text = broadcast_text(*membership_.group, text);
  const std::vector<ps::Placement> places = ps::placements_from_text(text);
  if (client_.worker() != 0) client_.set_places(places);
  placed_ = true;
  assigned_ = places.front().source >= 0;
  ahead_ = together_ && std::ranges::any_of(places, [this](const ps::Placement& place) {
             return place.source >= 0 && place.latest > pushed_;
           });
}

void RemoteParameters::assign_all() {
  for (int state = -1; state < states_; ++state)
    for (size_t i = 0; i < parts_.size(); ++i) {
      if (state >= 0 && parts_[i].is_state) continue;
      const std::span<const float> values =
          state < 0 ? parts_[i].values : parts_[i].memory[static_cast<size_t>(state)];
      client_.run({.kind = ps::Kind::assign,
                   .keys = segments_[i + 1].keys,
                   .values = {values.data()},
                   .state = state});
    }
}

void RemoteParameters::start(int bucket, const std::vector<Memory>& partials, const Step& step) {
  const Bucket& part = buckets_[static_cast<size_t>(bucket)];
  const bool last = bucket + 1 == static_cast<int>(buckets_.size());
  ps::Request request = {.flags = (last ? ps::finishes : 0u) | (step.stop ? ps::stop : 0u),
                         .iteration = step.number,
                         .keys = keys_of(part),
                         .lanes = step.lanes,
                         .learning_rate = step.learning_rate};
  pushed_ = step.number;
  if (!options_.compress.empty()) {
    add_here(partials, {part.offset / sizeof(float), (part.offset + part.bytes) / sizeof(float)});
    request.values = {by_key(partials.front(), request.keys)};
    return start_coded(std::move(request), last);
  }
  const auto send_part = [&](const ps::KeyRange& keys, uint32_t flags) {
    request.keys = keys;
    request.flags = flags;
    request.values.clear();
    for (const Memory& partial : partials)
      request.values.push_back(partial.floats().data() + keys.first);
    send(request);
  };
  const uint32_t flags = request.flags;
  ps::KeyRange keys = request.keys;
  if (bucket == 0 && holds_back()) {
    send_part({0, statistics_.size()}, flags & ~ps::finishes);
    keys.first = statistics_.size();
  }
  // A table has a request of its own, so that a repeated step finds it, whatever its rows.
  for (const Bucket::Gradient& table : tables_in(part)) {
    const uint64_t first = table.offset / sizeof(float), end = first + table.matrix.size();
    if (keys.first < first) send_part({keys.first, first}, flags & ~ps::finishes);
    request.keys = {first, end};
    request.flags = flags & ~ps::finishes;
    if (!start_rows(table, partials, request)) send_part(request.keys, request.flags);
    keys.first = end;
  }
  if (!keys.empty() || last) send_part(keys, flags);
}

std::vector<Bucket::Gradient> RemoteParameters::tables_in(const Bucket& bucket) const {
  using Rows = RemoteOptions::Rows;
  std::vector<Bucket::Gradient> tables;
  for (const Bucket::Gradient& gradient : bucket.gradients)
    if ((options_.rows == Rows::lazy && gradient.is_table) ||
        (options_.rows == Rows::touched && gradient.by_rows))
      tables.push_back(gradient);
  return tables;
}

bool RemoteParameters::start_rows(const Bucket::Gradient& table,
                                  const std::vector<Memory>& partials, ps::Request request) {
  const size_t columns = table.matrix.columns;
  const auto table_in = [&](const Memory& region) {
    return region.part(table.offset, table.bytes()).floats();
  };
  ThreadPool here(1);
  TouchedRows own;
  for (const Memory& partial : partials)
    merge_rows(own, touched_rows(table_in(partial), columns, here));
  const bool lazy = options_.rows == RemoteOptions::Rows::lazy;
  const size_t all = table.matrix.rows * static_cast<size_t>(membership_.group->size());
  const std::optional<TouchedRows> rows =
      agree_on_rows(*membership_.group, own, lazy ? all : table.matrix.rows / 2, "touched rows");
  if (!rows) return false;
  SentRows& sent = *sent_rows_.emplace_back(std::make_unique<SentRows>());
  for (const uint32_t row : *rows)
    for (size_t column = 0; column < columns; ++column)
      sent.keys.push_back(request.keys.first + row * columns + column);
  request.values.clear();  // those of the part before the table
  for (const Memory& partial : partials) {
    std::vector<float>& packed = sent.partials.emplace_back(sent.keys.size());
    pack_rows(table_in(partial), *rows, columns, packed);
    request.values.push_back(packed.data());
  }
  request.flags |= ps::same_list;
  request.list = sent.keys;
  request.sink = [this, &sent](size_t offset, std::span<const float> values, bool) {
    for (size_t i = 0; i < values.size();) {
      size_t end = i + 1;
      while (end < values.size() && sent.keys[offset + end] == sent.keys[offset + end - 1] + 1)
        ++end;
      arrived_.push_back(
          {sent.keys[offset + i], {}, false, {values.begin() + i, values.begin() + end}});
      arrived_.back().values = arrived_.back().owned;
      i = end;
    }
  };
  tickets_.push_back(client_.start(request));
  return true;
}

// Compresses gradients; statistics and observations in the bucket stay exact.
void RemoteParameters::start_coded(ps::Request request, bool last) {
  const ps::KeyRange all = request.keys;
  float* const sums = const_cast<float*>(request.values.front());
  const uint64_t first = std::max(all.first, uint64_t{statistics_.size()});
  uint64_t end = first;
  for (const ps::Segment& segment : segments_)
    if (segment.kind == ps::SegmentKind::weight && all.contains(segment.keys))
      end = segment.keys.last;
  const ps::KeyRange pieces[] = {{all.first, first}, {first, end}, {end, all.last}};
  request.lanes = {client_.worker(), client_.worker() + 1};
  for (int i = 0; i < 3; ++i) {
    const bool ends = last && i == 2;
    if (pieces[i].empty() && !ends) continue;
    request.keys = pieces[i];
    request.values = {sums + request.keys.first};
    request.flags &= ~(ps::finishes | ps::coded);
    if (ends) request.flags |= ps::finishes;
    request.lost = {};
    if (i == 1) {
      request.flags |= ps::coded;
      request.lost = std::span(lost_).subspan(request.keys.first, request.keys.size());
      for (uint64_t key = request.keys.first; key < request.keys.last; ++key)
        sums[key] += lost_[key];
    }
    send(request);
  }
}

// Statistics are never held back. They arrive before anything is released.
void RemoteParameters::send(ps::Request request) {
  const bool statistics = !request.keys.empty() && request.keys.last <= statistics_.size();
  request.sink = statistics ? sink(request.keys.first) : sink_of_step(request.keys.first);
  if (holds_back() && !statistics) {
    request.kind = ps::Kind::push;
    request.flags |= ps::held;
    request.text_sink = [this](std::string_view text) {
      squares_.merge(ps::squares_from_text(text));
    };
    held_.push_back(request);
  }
  tickets_.push_back(client_.start(request));
}

void RemoteParameters::wait_for_answers() {
  for (const ps::Client::Ticket& ticket : tickets_) client_.wait(ticket);
  tickets_.clear();
}

void RemoteParameters::release_held() {
  double squares = 0;
  for (const auto& [key, square] : squares_) squares += square;
  Update& update = stepper_.update();
  float scale = stepper_.read_statistics(statistics_, pushed_).gradient_scale();
  if (update.clips()) scale *= update.clip_scale(squares, scale);
  for (ps::Request& request : held_) {
    request.kind = ps::Kind::pull;
    request.flags &= ps::held | ps::coded;
    request.scale = scale;
    tickets_.push_back(client_.start(request));
  }
  held_.clear();
  squares_.clear();
  wait_for_answers();
}

std::span<const float> RemoteParameters::finish() {
  wait_for_answers();
  if (!held_.empty()) release_held();
  place_arrived();
  sent_rows_.clear();
  ahead_ = false;
  return statistics_;
}

std::span<const float> RemoteParameters::step_apart(const std::vector<Memory>& partials,
                                                    const Step& step, float share) {
  if (awaited_)
    client_.run(
        {.kind = ps::Kind::report, .flags = ps::after_all, .iteration = *awaited_, .keys = {}});
  awaited_.reset();
  const ps::KeyRange all = {0, client_.map().keys()};
  add_here(partials, {0, stepper_.region().bytes() / sizeof(float)});
  if (share > 0) scale_own(partials.front(), share);
  float* sums = by_key(partials.front(), all);
  accrued_shares_ += share;
  if (accrued_ && share > 0) {
    const std::span<float> accrued = accrued_.floats();
    for (const ps::Segment& segment : segments_)
      for (uint64_t key = segment.keys.first; key < segment.keys.last; ++key)
        accrued[key] =
            segment.kind == ps::SegmentKind::weight ? accrued[key] + sums[key] : sums[key];
  }
  if (accrued_) sums = accrued_.floats().data();
  last_ = step;
  const bool fetches = step.number % options_.fetch_every == 0 || step.last;
  if (!fetches) update_here(partials.front().floats().data(), step.learning_rate);
  if (step.number % options_.push_every == 0 || step.last || step.stop || step.pushes)
    push(sums, step, fetches);
  else if (fetches)
    fetch();
  return partials.front().floats();
}

void RemoteParameters::push(float* sums, const Step& step, bool fetches) {
  pushed_ = step.number;
  ps::Request request = {.kind = ps::Kind::push,
                         .flags = ps::finishes | (step.stop ? ps::stop : 0u),
                         .iteration = step.number,
                         .keys = {},
                         .lanes = step.lanes};
  if (accrued_shares_ == 0) {
    // adds nothing, but advances the servers' clock
    client_.run(request);
    if (fetches) fetch();
    return;
  }
  if (fetches) request.kind = ps::Kind::exchange;
  request.keys = {0, client_.map().keys()};
  request.values = {sums};
  request.learning_rate = step.learning_rate * accrued_shares_;
  request.scale = 1 / accrued_shares_;
  request.sink = sink(0);
  if (options_.compress.empty())
    client_.run(request);
  else
    run_coded(request);
  accrued_shares_ = 0;
  if (accrued_) std::ranges::fill(accrued_.floats(), 0.0f);
}

void RemoteParameters::push_rest() {
  if (last_.number > pushed_) push(accrued_.floats().data(), last_, false);
}

void RemoteParameters::scale_own(const Memory& region, float share) {
  Update& update = stepper_.update();
  float scale = stepper_.read_statistics(region.floats(), pushed_).gradient_scale();
  if (update.clips()) scale *= update.clip_scale(region, scale / share);
  if (scale == 1) return;
  for (const Update::Target& part : parts_) {
    if (part.is_state) continue;
    for (float& sum : SummedRegion::values(region, part)) sum *= scale;
  }
}

// Compresses the contiguous gradients; the other values of the region stay exact.
void RemoteParameters::run_coded(ps::Request request) {
  float* const sums = const_cast<float*>(request.values.front());
  ps::KeyRange gradients = {statistics_.size(), statistics_.size()};
  for (const ps::Segment& segment : segments_)
    if (segment.kind == ps::SegmentKind::weight) gradients.last = segment.keys.last;
  const uint32_t flags = request.flags;
  request.keys = gradients;
  request.flags = (flags & ~uint32_t{ps::finishes}) | ps::coded;
  request.values = {sums + gradients.first};
  request.lost = std::span(lost_).subspan(gradients.first, gradients.size());
  for (uint64_t key = gradients.first; key < gradients.last; ++key) sums[key] += lost_[key];
  request.sink = sink(gradients.first);
  const ps::Client::Ticket packed = client_.start(request);
  request.keys = {gradients.last, client_.map().keys()};
  request.flags = flags;
  request.values = {sums + gradients.last};
  request.lost = {};
  request.sink = sink(gradients.last);
  client_.run(request);
  client_.wait(packed);
}

// The worker makes plain steps of its own until new values arrive.
void RemoteParameters::update_here(const float* sums, float learning_rate) {
  for (Update::Target& part : parts_)
    if (!part.is_state)
      for (size_t i = 0; i < part.values.size(); ++i)
        part.values[i] -= learning_rate * sums[part.offset / sizeof(float) + i];
}

comm::LaneLayout RemoteParameters::shares(int64_t step, double seconds) {
  const std::vector<int> lanes = client_.shares(step, seconds);
  return {std::accumulate(lanes.begin(), lanes.end(), 0), lanes};
}

void RemoteParameters::pull(int state, bool after_all) {
  client_.run({.kind = ps::Kind::pull,
               .flags = after_all ? uint32_t{ps::after_all} : 0,
               .iteration = pushed_,
               .keys = {0, client_.map().keys()},
               .state = state,
               .sink = sink(0, state)});
}

void RemoteParameters::fetch(bool after_all) { pull(-1, after_all); }

void RemoteParameters::fetch_state() {
  const auto pull_all = [this] {
    for (int state = -1; state < states_; ++state) pull(state, false);
  };
  if (together_ || client_.worker() != 0) return pull_all();
  const ps::Frozen frozen = client_.freeze();
  pull_all();
  client_.thaw();
  updates_ = frozen.updates;
  decided_shares_ = frozen.shares;
  steps_.clear();
  for (size_t rank = 0; rank < frozen.finished.size(); ++rank)
    if (frozen.finished[rank] != ps::Frozen::kLost)
      steps_[membership_.number_of(static_cast<int>(rank))] = frozen.finished[rank];
}

ps::Sink RemoteParameters::sink(uint64_t first_key, int state) {
  return [=, this](size_t offset, std::span<const float> values, bool change) {
    place(first_key + offset, values, change, state);
  };
}

ps::Sink RemoteParameters::sink_of_step(uint64_t first_key) {
  return [=, this](size_t offset, std::span<const float> values, bool change) {
    arrived_.push_back({first_key + offset, values, change, {}});
    if (client_.stays(values)) return;
    arrived_.back().owned.assign(values.begin(), values.end());
    arrived_.back().values = arrived_.back().owned;
  };
}

void RemoteParameters::place_arrived() {
  for (const Arrived& each : arrived_) place(each.first_key, each.values, each.change, -1);
  arrived_.clear();
}

void RemoteParameters::place(uint64_t first_key, std::span<const float> values, bool change,
                             int state) {
  const ps::KeyRange got = {first_key, first_key + values.size()};
  for (size_t i = 0; i < segments_.size(); ++i) {
    const ps::KeyRange here = ps::intersection(got, segments_[i].keys);
    if (here.empty()) continue;
    std::span<float> target = statistics_;
    if (i > 0) {
      Update::Target& part = parts_[i - 1];
      if (state >= 0 && part.is_state) continue;
      target = state < 0 ? part.values : part.memory[static_cast<size_t>(state)];
    } else if (state >= 0) {
      continue;
    }
    const auto source = values.subspan(here.first - got.first, here.size());
    float* const out = target.data() + (here.first - segments_[i].keys.first);
    if (change)
      for (size_t k = 0; k < source.size(); ++k) out[k] += source[k];
    else
      std::copy(source.begin(), source.end(), out);
  }
}

}  // namespace artel
