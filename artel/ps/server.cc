#include "artel/ps/server.h"

#include <algorithm>
#include <limits>
#include <thread>

#include "artel/base/error.h"
#include "artel/base/mutex.h"
#include "artel/ps/backup.h"
#include "artel/ps/messages.h"
#include "artel/ps/range_server.h"

namespace artel::ps {

Server::Server(std::shared_ptr<comm::Group> group, ServerOptions options, Holdings* kept)
    : group_(std::move(group)), options_(std::move(options)), holdings_(kept ? *kept : only_here_) {
  require(options_.workers >= 1 && options_.workers <= group_->rank(), ErrorKind::invalid_argument,
          "[ps] server: got {} workers before rank {}, expected 1 to {}", options_.workers,
          group_->rank(), group_->rank());
}

void Server::run() {
  const std::vector<Placement> places = take_places();
  Mutex mutex;
  std::exception_ptr failure;
  std::vector<std::thread> threads;
  const auto start = [&](auto body) {
    threads.emplace_back([&, body] {
      try {
        body();
      } catch (const std::exception& error) {
        // Workers would wait forever for this server. If the group has failed, its first cause is
        // kept.
        const auto* const known = dynamic_cast<const Error*>(&error);
        const std::string server = fmt::format("server {}", own());
        if (known && known->kind() == ErrorKind::communication)
          group_->dissolve(error.what(), server);
        else
          group_->abort(error.what(), server);
        const MutexLock lock(mutex);
        if (!failure) failure = std::current_exception();
      }
    });
  };
  for (int range = 0; range < std::ssize(places); ++range) {
    const Placement& place = places[static_cast<size_t>(range)];
    std::shared_ptr<KeptRange>& slot = holdings_[range];
    if (place.primary == own())
      start([&, range, backup = place.backup < 0 ? -1 : options_.workers + place.backup] {
        RangeServer(group_, options_, {.range = range, .backup = backup, .slot = slot}).run();
      });
    if (place.backup == own())
      start([&, range, primary = options_.workers + place.primary] {
        keep_copy(group_, primary, range, slot, options_.rules);
      });
  }
  for (std::thread& thread : threads) thread.join();
  if (failure) std::rethrow_exception(failure);
}

// Answers worker 0's three requests: list the holdings, copy ranges to their places, and begin.
std::vector<Placement> Server::take_places() {
  std::erase_if(holdings_, [](const auto& each) { return each.second == nullptr; });
  const auto allocate = [this](size_t bytes) { return group_->allocate(bytes); };
  for (auto& [range, kept] : holdings_) kept->move_to(options_.rules, allocate);
  Outbox answers(group_, 0, kPlacedTag);
  const auto listen = [this] { return receive_message(*group_, 0, kPlaceTag, true); };
  const auto answer = [&](std::string_view text) {
    const auto bytes = std::as_bytes(std::span(text));
    answers.send(Header{.kind = Kind::text}, {bytes.begin(), bytes.end()});
  };
  listen();
  std::vector<Holding> held;
  for (const auto& [range, kept] : holdings_)
    held.push_back({range, kept->changes(), kept->begun(), kept->latest()});
  answer(to_text(held));
  const std::vector<Placement> places = placements_from_text(listen().value_text());
  copy_ranges(places);
  answer("copied");
  listen();
  // All servers have their ranges. Drops those that are no longer assigned here, before they become
  // stale.
  std::erase_if(holdings_, [&](const auto& each) {
    const bool known = each.first >= 0 && each.first < std::ssize(places);
    const Placement place = known ? places[static_cast<size_t>(each.first)] : Placement{-1, -1};
    return place.source < 0 || (place.primary != own() && place.backup != own());
  });
  answer("begun");
  answers.forget(std::numeric_limits<uint64_t>::max());
  return places;
}

void Server::copy_ranges(const std::vector<Placement>& places) {
  std::vector<std::unique_ptr<Outbox>> outboxes;
  Holdings copies;
  for (int range = 0; range < std::ssize(places); ++range) {
    const Placement& place = places[static_cast<size_t>(range)];
    if (place.source != own()) continue;
    for (const int target : place.copies) {
      outboxes.push_back(
          std::make_unique<Outbox>(group_, options_.workers + target, copy_tag(range)));
      send_range(*outboxes.back(), *holdings_.at(range));
    }
  }
  for (int range = 0; range < std::ssize(places); ++range) {
    const Placement& place = places[static_cast<size_t>(range)];
    if (std::ranges::count(place.copies, own()) == 0) continue;
    copies[range] =
        receive_range(*group_, options_.workers + place.source, copy_tag(range), options_.rules);
  }
  for (const auto& outbox : outboxes) outbox->forget(std::numeric_limits<uint64_t>::max());
  // Replaces a range only after its copy is complete.
  for (auto& [range, copy] : copies) holdings_[range] = copy;
}

}  // namespace artel::ps
