#include "artel/train/loop/data_check.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <chrono>
#include <span>
#include <thread>

#include "artel/base/error.h"
#include "artel/base/host_name.h"
#include "artel/base/log.h"
#include "artel/base/random.h"
#include "artel/base/text.h"
#include "artel/base/time.h"
#include "artel/cluster/worker_name.h"

namespace artel {
namespace {

Facts facts_of(const std::vector<data::FileDigest>& files) {
  Facts facts;
  for (const data::FileDigest& file : files)
    facts.emplace_back("file " + file.name, fmt::format("{} bytes, {}", file.bytes, file.digest));
  return facts;
}

// The same for many files: one fact for each of a few hundred groups of neighbours, so that it fits
// into the first message of a newcomer. The name of a file decides whether it ends a group: where a
// file is missing, only its own group and the next one differ.
Facts grouped_facts(const std::vector<data::FileDigest>& files, size_t most) {
  const size_t group_size = std::bit_ceil(2 * files.size() / most);
  Facts facts = {{"files", std::to_string(files.size())}};
  size_t first = 0;
  uint64_t digest = 0;
  for (size_t i = 0; i < files.size(); ++i) {
    digest = mix_key({digest, hash_name(files[i].name), hash_name(files[i].digest)});
    if (i + 1 < files.size() && hash_name(files[i].name) % group_size != 0) continue;
    facts.emplace_back(fmt::format("files {} to {}", files[first].name, files[i].name),
                       fmt::format("{}, {:016x}", i + 1 - first, digest));
    first = i + 1;
    digest = 0;
  }
  return facts;
}

}  // namespace

Facts DataCheck::facts() const {
  if (!files_ || !files_->done()) return {};
  constexpr size_t kMostFacts = 400;
  const std::vector<data::FileDigest>& files = files_->files();
  return files.size() <= kMostFacts ? facts_of(files) : grouped_facts(files, kMostFacts);
}

void DataCheck::wait() const {
  if (files_) files_->wait();
}

void DataCheck::wait(const std::function<bool()>& stop) const {
  if (!files_) return;
  constexpr double kSecondsBetweenLines = 10;
  Deadline next_line = Deadline::after(0);
  while (!files_->done() && files_->failure().empty() && !stop()) {
    if (next_line.passed()) {
      log(LogLevel::info, "reading the data of {} to compare it with that of the others: {} of {}",
          host_name(), format_bytes(static_cast<double>(files_->bytes_finished())),
          format_bytes(static_cast<double>(files_->bytes_read())));
      next_line = Deadline::after(kSecondsBetweenLines);
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
}

std::optional<Facts> DataCheck::disputed(comm::Group& group) {
  struct State {
    uint64_t known, failed, digest;
  };
  constexpr double kMostSeconds = 86400;
  const std::string failure = files_ ? files_->failure() : "";
  const State own = {knows() ? uint64_t{1} : 0, failure.empty() ? 0 : uint64_t{1},
                     files_ ? files_->digest() : 0};
  std::vector<State> all(static_cast<size_t>(group.size()));
  group.all_gather(std::as_bytes(std::span(&own, 1)), std::as_writable_bytes(std::span(all)), {},
                   {.label = "digest of the data", .timeout = kMostSeconds});
  for (int rank = 0; rank < group.size(); ++rank)
    if (all[static_cast<size_t>(rank)].failed != 0)
      fail(ErrorKind::io, "[data] {} cannot read its data: {}", worker_name(group, rank),
           broadcast_text(group, failure, rank));
  pending_ = std::ranges::any_of(all, [](const State& state) { return state.known == 0; });
  const bool same = std::ranges::all_of(
      all, [&](const State& state) { return state.digest == all.front().digest; });
  if (pending_ || same) return {};
  return files_ ? facts_of(files_->files()) : Facts();
}

}  // namespace artel
