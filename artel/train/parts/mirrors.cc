#include "artel/train/parts/mirrors.h"

#include <algorithm>
#include <fstream>
#include <limits>
#include <numeric>
#include <sstream>

#include "artel/base/error.h"
#include "artel/base/log.h"
#include "artel/base/text.h"
#include "artel/train/loop/agreement.h"

namespace artel {
namespace {

constexpr uint32_t kCopyTag = 0, kThanksTag = 1;
constexpr size_t kSentAtOnce = kPieceBytes / sizeof(float);
// Timeout of a piece in flight, in seconds.
constexpr double kCopySeconds = 300;

// Available memory of this machine; the largest number if unknown.
double free_memory_bytes() {
  std::ifstream info("/proc/meminfo");
  std::string word;
  double kilobytes = 0;
  while (info >> word)
    if (word == "MemAvailable:" && info >> kilobytes) return kilobytes * 1024;
  return std::numeric_limits<double>::max();
}

std::string kept_text(const std::vector<DividedPart>& parts) {
  std::string text;
  for (size_t i = 0; i < parts.size(); ++i)
    for (const KeptRange& range : parts[i].kept)
      text += fmt::format("{} {} {}\n", i, range.first, range.count);
  return text;
}

std::vector<std::vector<KeptRange>> kept_in(const std::string& text, size_t parts) {
  std::vector<std::vector<KeptRange>> ranges(parts);
  std::istringstream numbers(text);
  size_t part = 0;
  for (KeptRange range; numbers >> part >> range.first >> range.count;) {
    require(part < parts, ErrorKind::corrupt, "[mirrors] got a range of tensor {} of {}", part,
            parts);
    ranges[part].push_back(range);
  }
  return ranges;
}

std::vector<CopiedRange> copy_of(const std::vector<DividedPart>& parts) {
  std::vector<CopiedRange> ranges;
  for (const DividedPart& part : parts)
    for (const KeptRange& range : part.kept) {
      const auto values = part.values.subspan(range.first, range.count);
      ranges.push_back({part.name, range.first, {values.begin(), values.end()}});
    }
  return ranges;
}

}  // namespace

// Orders ranks by host and shifts them by the size of the fullest host. Then no target is on the
// same host, unless a host has more than half of the ranks.
std::vector<int> mirror_targets(const std::vector<int>& hosts) {
  const auto count = static_cast<int>(hosts.size());
  std::vector<int> order(hosts.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](int a, int b) { return hosts[a] < hosts[b]; });
  int64_t fullest = 0;
  for (const int host : hosts)
    fullest = std::max<int64_t>(fullest, std::count(hosts.begin(), hosts.end(), host));
  const int shift = 2 * fullest <= count ? static_cast<int>(fullest) : 1;
  std::vector<int> targets(hosts.size());
  for (int i = 0; i < count; ++i) targets[order[i]] = order[(i + shift) % count];
  return targets;
}

std::vector<KeptRange> exclusive_ranges(const std::vector<KeptRange>& own,
                                        const std::vector<std::vector<KeptRange>>& others) {
  std::vector<KeptRange> left = own;
  for (const std::vector<KeptRange>& theirs : others)
    for (const KeptRange& taken : theirs) {
      std::vector<KeptRange> rest;
      for (const KeptRange& range : left) {
        const size_t end = range.first + range.count, taken_end = taken.first + taken.count;
        if (range.first < std::min(end, taken.first))
          rest.push_back({range.first, std::min(end, taken.first) - range.first});
        if (end > std::max(range.first, taken_end))
          rest.push_back(
              {std::max(range.first, taken_end), end - std::max(range.first, taken_end)});
      }
      left = std::move(rest);
    }
  return left;
}

void Mirrors::begin(comm::Group& group, std::vector<DividedPart> parts, double limit) {
  parts_ = std::move(parts);
  begun_ = false;
  std::string all;
  for (const std::string& text : gather_text(group, kept_text(parts_))) all += text + ";";
  std::vector<std::vector<std::vector<KeptRange>>> kept;  // by worker and part
  for (const std::string& text : split(broadcast_text(group, all), ';'))
    kept.push_back(kept_in(text, parts_.size()));
  const std::vector<int> targets = mirror_targets(group.host_numbers());
  const auto own = std::find(targets.begin(), targets.end(), group.rank());
  to_ = targets[group.rank()];
  from_ = static_cast<int>(own - targets.begin());
  const auto only_at = [&](int rank) {
    std::vector<Only> only;
    size_t before = 0;
    for (size_t i = 0; i < parts_.size(); ++i) {
      std::vector<std::vector<KeptRange>> others;
      for (int other = 0; other < group.size(); ++other)
        if (other != rank) others.push_back(kept[other][i]);
      for (const KeptRange& range : kept[rank][i]) {
        for (const KeptRange& part : exclusive_ranges({range}, others))
          only.push_back({i, part, before});
        ++before;
      }
    }
    return only;
  };
  sent_ = only_at(group.rank());
  expected_ = only_at(from_);
  if (fits(group, limit)) group_ = group.split(0);
}

// Collective. Old copies still exist while new ones arrive.
bool Mirrors::fits(comm::Group& group, double limit) const {
  size_t floats = 0;
  for (const DividedPart& part : parts_)
    for (const KeptRange& range : part.kept) floats += range.count;
  for (const Only& theirs : expected_) floats += theirs.range.count;
  const std::vector<int> hosts = group.host_numbers();
  const auto here = std::count(hosts.begin(), hosts.end(), hosts[group.rank()]);
  const double needed = 2.0 * sizeof(float) * static_cast<double>(floats);
  const double room = free_memory_bytes() / static_cast<double>(here);
  int32_t fits = has_room_for_mirrors(needed, limit > 0 ? std::min(limit, room) : room) ? 1 : 0;
  group.all_reduce(std::as_writable_bytes(std::span(&fits, 1)), comm::ElementType::i32,
                   comm::ReductionKind::min, {.label = "room for copies"});
  if (fits == 0 && group.rank() == 0)
    log(LogLevel::warning,
        "copies of each worker's part would take more than a quarter of the free memory ({} per "
        "worker), so none are made, and the run ends if a worker is lost; try more workers, or "
        "cluster.mirror_every = 0",
        format_bytes(needed));
  return fits == 1;
}

bool Mirrors::due(int64_t step) const {
  if (!at_work() || copying(step)) return false;
  return !begun_ || step % every_ == 0;
}

void Mirrors::start(int64_t step, std::string text) {
  wait();
  begun_ = true;
  coming_ = std::make_unique<Set>();
  coming_->own = {step, text, {}};
  coming_->theirs = {step, std::move(text), {}};
  auto copied = std::make_shared<std::promise<void>>();
  copying_ = copied->get_future().share();
  sending_ = std::async(std::launch::async, [this, set = coming_.get(), copied] {
               try {
                 set->own.ranges = copy_of(parts_);
                 set->copied = true;
                 copied->set_value();
               } catch (...) {
                 copied->set_exception(std::current_exception());
                 throw;
               }
               transfer(*set);
             }).share();
}

// Sends and receives at once. A receiver confirms a complete copy, so that the sender may leave.
void Mirrors::transfer(Set& set) {
  struct Piece {
    size_t range = 0, at = 0, count = 0;  // position: range of the copy, offset
  };
  std::vector<Piece> out, in;
  for (const Only& only : sent_)
    for (size_t at = 0; at < only.range.count; at += kSentAtOnce)
      out.push_back({only.kept, only.range.first - set.own.ranges[only.kept].first + at,
                     std::min(kSentAtOnce, only.range.count - at)});
  for (const Only& only : expected_) {
    for (size_t at = 0; at < only.range.count; at += kSentAtOnce)
      in.push_back({set.theirs.ranges.size(), at, std::min(kSentAtOnce, only.range.count - at)});
    set.theirs.ranges.push_back(
        {parts_[only.part].name, only.range.first, std::vector<float>(only.range.count)});
  }
  const auto values = [](StateCopy& copy, const Piece& piece) {
    return std::as_writable_bytes(
        std::span(copy.ranges[piece.range].values).subspan(piece.at, piece.count));
  };
  const auto wait_for = [](comm::Handle receiving, comm::Handle sending) {
    if (receiving.valid()) receiving.wait(Deadline::after(kCopySeconds));
    if (sending.valid()) sending.wait(Deadline::after(kCopySeconds));
  };
  for (size_t i = 0; i < std::max(out.size(), in.size()); ++i)
    wait_for(
        i < in.size() ? group_->receive(from_, kCopyTag, values(set.theirs, in[i]))
                      : comm::Handle(),
        i < out.size() ? group_->send(to_, kCopyTag, values(set.own, out[i])) : comm::Handle());
  set.received = true;
  std::byte thanks{}, heard{};
  wait_for(group_->receive(to_, kThanksTag, std::span(&heard, 1)),
           group_->send(from_, kThanksTag, std::span(&thanks, 1)));
}

// True if all copies in flight must arrive before this step can be finished.
bool Mirrors::arrives_by(int64_t step) const {
  return step >= coming_->own.step + std::max<int64_t>(1, every_ / 2);
}

void Mirrors::before_update(int64_t step) {
  if (!coming_) return;
  copying_.get();
  if (arrives_by(step)) sending_.get();
}

void Mirrors::confirm(int64_t step) {
  if (!coming_ || !arrives_by(step)) return;
  there_.clear();
  last_.reset();
  there_.push_back(std::move(coming_));
}

void Mirrors::wait() {
  if (coming_) sending_.get();
}

void Mirrors::end() {
  if (coming_) {
    sending_.wait();
    there_.push_back(std::move(coming_));
  }
  group_.reset();
  parts_.clear();
}

void Mirrors::add_own(int64_t step, std::string text, const std::vector<DividedPart>& parts) {
  last_ = {step, std::move(text), copy_of(parts)};
}

std::vector<const StateCopy*> Mirrors::copies() const {
  std::vector<const StateCopy*> all;
  for (const auto& set : there_) {
    if (set->copied) all.push_back(&set->own);
    if (set->received) all.push_back(&set->theirs);
  }
  if (last_) all.push_back(&*last_);
  return all;
}

void Mirrors::keep_only(int64_t step) {
  std::erase_if(there_, [&](const auto& set) { return set->own.step != step; });
  if (last_ && last_->step != step) last_.reset();
}

}  // namespace artel
