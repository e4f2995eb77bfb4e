#include "artel/train/parts/divided_state.h"

#include <algorithm>
#include <array>
#include <limits>
#include <sstream>

#include "artel/base/error.h"
#include "artel/base/pages.h"
#include "artel/train/loop/agreement.h"

namespace artel {
namespace {

constexpr size_t kSentFloats = kPieceBytes / sizeof(float);
constexpr uint32_t kRequestTag = 0, kPieceTag = 1;

// Timeouts in seconds: for a piece in flight, and for worker 0 between two requests while its disk
// writes.
constexpr double kPieceSeconds = 300, kDiskSeconds = 900;

// Requests some elements of a part.
struct Request {
  uint64_t part = 0, first = 0, count = 0;
};
constexpr uint64_t kNoMore = std::numeric_limits<uint64_t>::max();

size_t elements(const DividedStateTransfer::Part& part) {
  return static_cast<size_t>(part.shape.elements());
}

// Calls use(first, count) for the pieces of a range.
template <typename Use>
void for_pieces(const DividedStateTransfer::Range& range, const Use& use) {
  for (size_t at = 0; at < range.count; at += kSentFloats)
    use(range.first + at, std::min(kSentFloats, range.count - at));
}

// Calls use(memory) for ranges that this worker does not keep.
void for_gaps(const DividedStateTransfer::Part& part, void (*use)(std::span<std::byte>)) {
  size_t at = 0;
  const auto until = [&](size_t end) {
    if (end > at) use(std::as_writable_bytes(part.values.subspan(at, end - at)));
  };
  for (const DividedStateTransfer::Range& range : part.kept) {
    until(range.first);
    at = range.first + range.count;
  }
  until(elements(part));
}

// One line per range: its part, first element, and length.
std::string ranges_text(const std::vector<DividedStateTransfer::Part>& parts) {
  std::string text;
  for (size_t i = 0; i < parts.size(); ++i)
    for (const DividedStateTransfer::Range& range : parts[i].kept)
      text += fmt::format("{} {} {}\n", i, range.first, range.count);
  return text;
}

}  // namespace

DividedStateTransfer::DividedStateTransfer(comm::Group& group, std::vector<Part> parts)
    : group_(group.split(0)), parts_(std::move(parts)) {
  for (size_t i = 0; i < parts_.size(); ++i) part_of_.emplace(parts_[i].name, i);
  const std::vector<std::string> texts = gather_text(group_, ranges_text(parts_));
  if (group_.rank() != 0) return;
  holders_.resize(parts_.size());
  for (size_t worker = 0; worker < texts.size(); ++worker) {
    std::istringstream numbers(texts[worker]);
    size_t part = 0;
    for (Holder holder = {static_cast<int>(worker), {}};
         numbers >> part >> holder.range.first >> holder.range.count;) {
      require(part < parts_.size() && holder.range.count > 0, ErrorKind::internal,
              "[sharding] worker {} keeps elements of tensor {} of {}", worker, part,
              parts_.size());
      holders_[part].push_back(holder);
    }
  }
  // If several workers keep an element, the first one provides it.
  givers_ = holders_;
  for (size_t i = 0; i < parts_.size(); ++i) {
    std::stable_sort(givers_[i].begin(), givers_[i].end(), [](const Holder& a, const Holder& b) {
      return a.range.first < b.range.first;
    });
    size_t end = 0;
    std::erase_if(givers_[i], [&](const Holder& holder) {
      if (holder.range.first != end) return true;
      end += holder.range.count;
      return false;
    });
    require(end == elements(parts_[i]), ErrorKind::internal,
            "[sharding] the workers keep {} of {} elements of '{}'", end, elements(parts_[i]),
            parts_[i].name);
  }
}

void DividedStateTransfer::complete(std::vector<TensorSource>& sources) {
  for (TensorSource& source : sources)
    if (const auto found = part_of_.find(source.name); found != part_of_.end())
      source.give = [this, part = found->second](const TensorSource::Write& write) {
        give(part, write);
      };
}

void DividedStateTransfer::give(size_t part, const TensorSource::Write& write) {
  const Part& tensor = parts_[part];
  if (same_memory(tensor.shape, tensor.layout, Layout::row_major()))
    return read(part, [&](std::span<const float> values, size_t) { write(std::as_bytes(values)); });
  // In another layout, the first row is spread over the whole tensor.
  std::vector<float> all(elements(tensor));
  read(part, [&](std::span<const float> values, size_t first) {
    std::copy(values.begin(), values.end(), all.begin() + static_cast<std::ptrdiff_t>(first));
  });
  source_of(tensor.name, tensor.shape, tensor.layout, all).give(write);
}

void DividedStateTransfer::read(size_t part, const Use& use) {
  for (const Holder& holder : givers_[part]) {
    const auto [first, count] = holder.range;
    if (holder.worker == 0)
      use(parts_[part].values.subspan(first, count), first);
    else
      ask(part, holder, use);
  }
}

// Requests the next piece while one is used. Receives all pieces even after a failure here, because
// the other worker does not know about it.
void DividedStateTransfer::ask(size_t part, const Holder& holder, const Use& use) try {
  const auto [first, count] = holder.range;
  const Request request = {part, first, count};
  group_.send(holder.worker, kRequestTag, std::as_bytes(std::span(&request, 1)))
      .wait(Deadline::after(kPieceSeconds));
  std::array<std::vector<float>, 2> memory;
  std::array<comm::Handle, 2> handles;
  const auto expect = [&, count = count](size_t at) {
    const size_t slot = at / kSentFloats % 2;
    if (at >= count) return;
    memory[slot].resize(std::min(kSentFloats, count - at));
    handles[slot] =
        group_.receive(holder.worker, kPieceTag, std::as_writable_bytes(std::span(memory[slot])));
  };
  std::exception_ptr error;
  expect(0);
  for (size_t at = 0; at < count; at += kSentFloats) {
    expect(at + kSentFloats);
    const size_t slot = at / kSentFloats % 2;
    handles[slot].wait(Deadline::after(kPieceSeconds));
    try {
      if (!error) use(memory[slot], first + at);
    } catch (...) {
      error = std::current_exception();
    }
  }
  if (error) std::rethrow_exception(error);
} catch (const Error& error) {
  if (error.kind() != ErrorKind::communication) throw;
  throw Error(error.kind(), fmt::format("[checkpoint] '{}', of which worker {} has a part: {}",
                                        parts_[part].name, holder.worker, error.what()));
}

void DividedStateTransfer::serve() {
  while (true) {
    Request request;
    group_.listen(0, kRequestTag, std::as_writable_bytes(std::span(&request, 1)))
        .wait(Deadline::after(kDiskSeconds));
    if (request.part == kNoMore) return;
    const bool exists = request.part < parts_.size() &&
                        request.first <= elements(parts_[request.part]) &&
                        request.count <= elements(parts_[request.part]) - request.first;
    require(exists, ErrorKind::corrupt, "[checkpoint] worker 0 asks for {} elements of tensor {}",
            request.count, request.part);
    send({0, {request.first, request.count}}, parts_[request.part].values);
  }
}

void DividedStateTransfer::release() {
  static constexpr Request kEnd = {kNoMore, 0, 0};
  for (int worker = 1; worker < group_.size(); ++worker) try {
      group_.send(worker, kRequestTag, std::as_bytes(std::span(&kEnd, 1)))
          .wait(Deadline::after(kPieceSeconds));
    } catch (const std::exception&) {
      // the failed group has recorded the cause, and so has that worker
    }
}

bool DividedStateTransfer::divides(const std::string& name) const {
  return std::any_of(parts_.begin(), parts_.end(),
                     [&](const Part& part) { return part.is_weight && part.name == name; });
}

bool DividedStateTransfer::take(const std::string& name, size_t first,
                                std::span<const float> values) {
  const auto found = part_of_.find(name);
  if (found == part_of_.end()) return false;
  const Part& part = parts_[found->second];
  for (const Range& range : part.kept) {
    const size_t begin = std::max(range.first, first);
    const size_t end = std::min(range.first + range.count, first + values.size());
    if (begin < end)
      std::copy_n(values.begin() + static_cast<std::ptrdiff_t>(begin - first), end - begin,
                  part.values.begin() + static_cast<std::ptrdiff_t>(begin));
  }
  return true;
}

void DividedStateTransfer::forget_others() {
  for (const Part& part : parts_) for_gaps(part, part.is_weight ? forget : leave_out);
}

void DividedStateTransfer::hand_out(
    const std::function<std::span<const float>(const Part&)>& values,
    const std::function<void(const Part&)>& make) {
  for (size_t i = 0; i < parts_.size(); ++i) {
    const Part& part = parts_[i];
    const std::span<const float> all = group_.rank() == 0 ? values(part) : std::span<const float>();
    uint8_t sends = all.empty() ? 0 : 1;
    group_.broadcast(std::as_writable_bytes(std::span(&sends, 1)), 0, {.label = "first values"});
    if (sends == 0)
      make(part);
    else if (group_.rank() > 0)
      receive(part);
    else
      for (const Holder& holder : holders_[i]) hand(part, holder, all);
    if (sends == 0) for_gaps(part, part.is_weight ? forget : leave_out);
  }
  // Worker 0 keeps everything until all have their parts, so nothing is lost if a worker dies
  // before.
  forget_others();
}

void DividedStateTransfer::hand(const Part& part, const Holder& holder,
                                std::span<const float> all) {
  if (holder.worker > 0) return send(holder, all);
  const auto [first, count] = holder.range;
  if (all.data() != part.values.data())
    std::copy_n(all.begin() + static_cast<std::ptrdiff_t>(first), count,
                part.values.begin() + static_cast<std::ptrdiff_t>(first));
}

void DividedStateTransfer::send(const Holder& holder, std::span<const float> all) {
  for_pieces(holder.range, [&](size_t first, size_t count) {
    group_.send(holder.worker, kPieceTag, std::as_bytes(all.subspan(first, count)))
        .wait(Deadline::after(kPieceSeconds));
  });
}

void DividedStateTransfer::receive(const Part& part) {
  for (const Range& range : part.kept)
    for_pieces(range, [&](size_t first, size_t count) {
      group_.receive(0, kPieceTag, std::as_writable_bytes(part.values.subspan(first, count)))
          .wait(Deadline::after(kPieceSeconds));
    });
}

void DividedStateTransfer::forget_weights() {
  for (const Part& part : parts_)
    if (part.is_weight) for_gaps(part, forget);
}

void DividedStateTransfer::gather_optimizer() {
  if (group_.rank() != 0) return serve();
  for (size_t i = 0; i < parts_.size(); ++i) {
    if (parts_[i].is_weight) continue;
    for (const Holder& holder : givers_[i])
      if (holder.worker != 0)
        ask(i, holder, [&](std::span<const float> values, size_t first) {
          std::copy(values.begin(), values.end(), parts_[i].values.subspan(first).begin());
        });
  }
  release();
}

KeptRanges in_order(KeptRanges ranges) {
  for (auto& [name, own] : ranges)
    std::sort(own.begin(), own.end(), [](const DividedStateTransfer::Range& a, const auto& b) {
      return a.first < b.first;
    });
  return ranges;
}

std::vector<DividedStateTransfer::Part> divided_parts(Parameters& parameters, Update& update,
                                                      const KeptRanges& weights,
                                                      const KeptRanges& optimizer) {
  std::vector<DividedStateTransfer::Part> parts;
  for (const ParameterEntry& entry : parameters.entries())
    if (const auto kept = weights.find(entry.name); kept != weights.end())
      parts.push_back(
          {entry.name, entry.shape, entry.layout, parameters.values(entry), kept->second, true});
  for (const auto& [name, entry, values] : update.remembered())
    if (const auto kept = optimizer.find(entry.name); kept != optimizer.end())
      parts.push_back({name, entry.shape, entry.layout, values, kept->second, false});
  return parts;
}

}  // namespace artel
