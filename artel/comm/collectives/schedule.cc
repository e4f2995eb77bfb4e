#include "artel/comm/collectives/schedule.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>

#include "artel/base/error.h"
#include "artel/base/plural.h"
#include "artel/base/text.h"

namespace artel::comm {
namespace {

constexpr std::array<std::string_view, 7> kNames{"automatic",    "ring",   "tree",  "halving",
                                                 "hierarchical", "direct", "native"};
// Earlier names.
constexpr std::array<std::pair<std::string_view, Algorithm>, 2> kAliases{
    {{"halving_doubling", Algorithm::halving}, {"two_level", Algorithm::hierarchical}}};

int modulo(int value, int size) { return (value % size + size) % size; }

// Appends `part` after the rounds of `schedule`. `members` maps the ranks of `part`.
void append(Schedule& schedule, const Schedule& part, std::span<const int> members, int rounds) {
  for (Hop hop : part.hops) {
    hop.round += rounds;
    hop.peer = members[hop.peer];
    schedule.hops.push_back(hop);
  }
}

std::vector<int> everybody(int size) {
  std::vector<int> members(size);
  for (int i = 0; i < size; ++i) members[i] = i;
  return members;
}

Schedule ring(int size, int rank) {
  Schedule schedule = reduce_scatter_schedule(size, rank);
  append(schedule, all_gather_schedule(size, rank), everybody(size), size - 1);
  return schedule;
}

// Position in the binary tree whose root is position 0, as a heap: children of v are 2v+1, 2v+2.
int depth(int position) { return std::bit_width(static_cast<unsigned>(position + 1)) - 1; }

Schedule tree(int size, int rank) {
  Schedule schedule = reduce_schedule(size, rank, 0);
  append(schedule, broadcast_schedule(size, rank, 0), everybody(size), depth(size - 1));
  return schedule;
}

// Recursive halving, then doubling, among the largest power of two of ranks. Each of the `extra`
// remaining ranks is paired with a neighbour among the first 2 * extra ranks: the even rank sends
// its data to the odd rank first, and receives the result at the end.
Schedule halving(int size, int rank) {
  const int power = static_cast<int>(std::bit_floor(static_cast<unsigned>(size)));
  const int extra = size - power;
  const int levels = std::bit_width(static_cast<unsigned>(power)) - 1;
  const auto real_rank = [&](int place) { return place < extra ? 2 * place + 1 : place + extra; };
  Schedule schedule{power, {}};
  const int last_round = 2 * levels + 1;
  if (rank < 2 * extra && rank % 2 == 0) {
    schedule.hops.push_back({0, rank + 1, Direction::send, 0, power, Effect::add});
    schedule.hops.push_back({last_round, rank + 1, Direction::receive, 0, power, Effect::replace});
    return schedule;
  }
  if (rank < 2 * extra)
    schedule.hops.push_back({0, rank - 1, Direction::receive, 0, power, Effect::add});
  const int place = rank < 2 * extra ? rank / 2 : rank - extra;
  int first = 0;
  int last = power;
  int round = 1;
  for (int distance = power / 2; distance > 0; distance /= 2, ++round) {
    const int peer = real_rank(place ^ distance);
    const int middle = (first + last) / 2;
    const bool upper = (place & distance) != 0;
    const auto [give_first, give_last] = upper ? std::pair{first, middle} : std::pair{middle, last};
    (upper ? first : last) = middle;
    schedule.hops.push_back({round, peer, Direction::send, give_first, give_last, Effect::add});
    schedule.hops.push_back({round, peer, Direction::receive, first, last, Effect::add});
  }
  for (int distance = 1; distance < power; distance *= 2, ++round) {
    const int peer = real_rank(place ^ distance);
    const bool upper = (place & distance) != 0;
    const int length = last - first;
    const int other = upper ? first - length : last;
    schedule.hops.push_back({round, peer, Direction::send, first, last, Effect::replace});
    schedule.hops.push_back(
        {round, peer, Direction::receive, other, other + length, Effect::replace});
    first = std::min(first, other);
    last = first + 2 * length;
  }
  if (rank < 2 * extra)
    schedule.hops.push_back({last_round, rank - 1, Direction::send, 0, power, Effect::replace});
  return schedule;
}

// The ranks of each host, hosts in the order of their first rank.
std::vector<std::vector<int>> ranks_by_host(int size, std::span<const int> hosts) {
  require(hosts.empty() || hosts.size() == static_cast<size_t>(size), ErrorKind::invalid_argument,
          "[comm] hierarchical: got the hosts of {} ranks, expected {}", hosts.size(), size);
  std::vector<int> names;
  std::vector<std::vector<int>> ranks;
  for (int rank = 0; rank < size; ++rank) {
    const int host = hosts.empty() ? 0 : hosts[rank];
    const auto found = std::find(names.begin(), names.end(), host);
    if (found == names.end()) {
      names.push_back(host);
      ranks.push_back({rank});
    } else {
      ranks[found - names.begin()].push_back(rank);
    }
  }
  return ranks;
}

// The data is cut into one stripe per rank of the smallest host, and each stripe into one chunk per
// host. Rank s of a host adds up stripe s of its neighbours. Then the ranks with stripe s of all
// hosts add up one chunk each and exchange the totals, and each gives its stripe to its neighbours.
// 2(H-1)/H of the bytes cross the wire of each of the H hosts.
Schedule hierarchical(int size, int rank, std::span<const int> hosts) {
  const auto ranks = ranks_by_host(size, hosts);
  const int count = static_cast<int>(ranks.size());
  size_t stripes = ranks.front().size();
  for (const auto& host : ranks) stripes = std::min(stripes, host.size());
  const auto mine = std::find_if(ranks.begin(), ranks.end(), [&](const std::vector<int>& host) {
    return std::find(host.begin(), host.end(), rank) != host.end();
  });
  const auto own_host = static_cast<int>(mine - ranks.begin());
  const auto own_stripe =
      static_cast<size_t>(std::find(mine->begin(), mine->end(), rank) - mine->begin());
  Schedule schedule{count * static_cast<int>(stripes), {}};
  const auto add = [&](int round, int peer, Direction direction, size_t stripe, int first, int last,
                       Effect effect) {
    const int begin = static_cast<int>(stripe) * count;
    if (stripe < stripes)
      schedule.hops.push_back({round, peer, direction, begin + first, begin + last, effect});
  };
  const auto exchange_inside = [&](int round, Effect effect) {
    for (size_t place = 0; place < mine->size(); ++place) {
      const int peer = (*mine)[place];
      const bool adds = effect == Effect::add;
      if (peer == rank) continue;
      add(round, peer, Direction::send, adds ? place : own_stripe, 0, count, effect);
      add(round, peer, Direction::receive, adds ? own_stripe : place, 0, count, effect);
    }
  };
  exchange_inside(0, Effect::add);
  for (int round = 1; own_stripe < stripes && round <= 2; ++round)
    for (int distance = 1; distance < count; ++distance) {
      const bool adds = round == 1;
      const int to = modulo(own_host + distance, count), from = modulo(own_host - distance, count);
      const int give = adds ? to : own_host, take = adds ? own_host : from;
      const Effect effect = adds ? Effect::add : Effect::replace;
      add(round, ranks[to][own_stripe], Direction::send, own_stripe, give, give + 1, effect);
      add(round, ranks[from][own_stripe], Direction::receive, own_stripe, take, take + 1, effect);
    }
  exchange_inside(3, Effect::replace);
  return schedule;
}

// Rank r adds up chunk r of all ranks, then sends the sum to all of them.
Schedule direct(int size, int rank) {
  Schedule schedule{size, {}};
  for (int round = 0; round < 2; ++round) {
    const Effect effect = round == 0 ? Effect::add : Effect::replace;
    for (int distance = 1; distance < size; ++distance) {
      const int to = modulo(rank + distance, size);
      const int from = modulo(rank - distance, size);
      const int give = round == 0 ? to : rank;
      const int take = round == 0 ? rank : from;
      schedule.hops.push_back({round, to, Direction::send, give, give + 1, effect});
      schedule.hops.push_back({round, from, Direction::receive, take, take + 1, effect});
    }
  }
  return schedule;
}

void check(int size, int rank) {
  require(size > 0 && rank >= 0 && rank < size, ErrorKind::invalid_argument,
          "[comm] schedule: got rank {} of {}, expected 0 <= rank < size", rank, size);
}

// One hop between the root and each other rank.
Schedule star(int size, int rank, int root, Direction at_root) {
  check(size, rank);
  const Direction elsewhere = at_root == Direction::send ? Direction::receive : Direction::send;
  Schedule schedule{size, {}};
  if (rank != root) {
    schedule.hops.push_back({0, root, elsewhere, rank, rank + 1, Effect::replace});
    return schedule;
  }
  for (int distance = 1; distance < size; ++distance) {
    const int peer = modulo(root + distance, size);
    schedule.hops.push_back({0, peer, at_root, peer, peer + 1, Effect::replace});
  }
  return schedule;
}

}  // namespace

std::string_view to_string(Algorithm algorithm) { return kNames[static_cast<size_t>(algorithm)]; }

Algorithm algorithm_from_string(std::string_view name) {
  for (const auto& [alias, algorithm] : kAliases)
    if (name == alias) return algorithm;
  const auto found = std::find(kNames.begin(), kNames.end(), name);
  require(found != kNames.end(), ErrorKind::invalid_argument,
          "[comm] algorithm: got '{}', expected one of {}{}", name, fmt::join(kNames, ", "),
          did_you_mean(name, {kNames.begin(), kNames.end()}));
  return static_cast<Algorithm>(found - kNames.begin());
}

Schedule all_reduce_schedule(Algorithm algorithm, int size, int rank, std::span<const int> hosts) {
  check(size, rank);
  switch (algorithm) {
    case Algorithm::ring:
      return ring(size, rank);
    case Algorithm::tree:
      return tree(size, rank);
    case Algorithm::halving:
      return halving(size, rank);
    case Algorithm::hierarchical:
      return hierarchical(size, rank, hosts);
    case Algorithm::direct:
      return direct(size, rank);
    case Algorithm::automatic:
    case Algorithm::native:
      break;
  }
  fail(ErrorKind::invalid_argument,
       "[comm] schedule: '{}' has no schedule of its own; try ring, tree, halving, hierarchical "
       "or direct",
       to_string(algorithm));
}

Schedule reduce_scatter_schedule(int size, int rank) {
  check(size, rank);
  Schedule schedule{size, {}};
  for (int round = 0; round < size - 1; ++round) {
    const int give = modulo(rank - round - 1, size);
    const int take = modulo(rank - round - 2, size);
    schedule.hops.push_back(
        {round, modulo(rank + 1, size), Direction::send, give, give + 1, Effect::add});
    schedule.hops.push_back(
        {round, modulo(rank - 1, size), Direction::receive, take, take + 1, Effect::add});
  }
  return schedule;
}

Schedule all_gather_schedule(int size, int rank) {
  check(size, rank);
  Schedule schedule{size, {}};
  for (int round = 0; round < size - 1; ++round) {
    const int give = modulo(rank - round, size);
    const int take = modulo(rank - round - 1, size);
    schedule.hops.push_back(
        {round, modulo(rank + 1, size), Direction::send, give, give + 1, Effect::replace});
    schedule.hops.push_back(
        {round, modulo(rank - 1, size), Direction::receive, take, take + 1, Effect::replace});
  }
  return schedule;
}

Schedule reduce_schedule(int size, int rank, int root) {
  check(size, rank);
  const int position = modulo(rank - root, size);
  const int rounds = depth(size - 1);
  const auto real_rank = [&](int place) { return modulo(place + root, size); };
  Schedule schedule{1, {}};
  for (int child = 2 * position + 1; child <= 2 * position + 2 && child < size; ++child)
    schedule.hops.push_back(
        {rounds - depth(child), real_rank(child), Direction::receive, 0, 1, Effect::add});
  if (position > 0)
    schedule.hops.push_back({rounds - depth(position), real_rank((position - 1) / 2),
                             Direction::send, 0, 1, Effect::add});
  return schedule;
}

Schedule broadcast_schedule(int size, int rank, int root) {
  check(size, rank);
  const int position = modulo(rank - root, size);
  const auto real_rank = [&](int place) { return modulo(place + root, size); };
  Schedule schedule{1, {}};
  if (position > 0)
    schedule.hops.push_back({depth(position) - 1, real_rank((position - 1) / 2), Direction::receive,
                             0, 1, Effect::replace});
  for (int child = 2 * position + 1; child <= 2 * position + 2 && child < size; ++child)
    schedule.hops.push_back(
        {depth(child) - 1, real_rank(child), Direction::send, 0, 1, Effect::replace});
  return schedule;
}

Schedule scatter_schedule(int size, int rank, int root) {
  return star(size, rank, root, Direction::send);
}

Schedule gather_schedule(int size, int rank, int root) {
  return star(size, rank, root, Direction::receive);
}

Schedule all_to_all_schedule(int size, int rank) {
  check(size, rank);
  Schedule schedule{size, {}};
  for (int distance = 1; distance < size; ++distance) {
    const int to = modulo(rank + distance, size);
    const int from = modulo(rank - distance, size);
    schedule.hops.push_back({distance - 1, to, Direction::send, to, to + 1, Effect::replace});
    schedule.hops.push_back(
        {distance - 1, from, Direction::receive, from, from + 1, Effect::replace});
  }
  return schedule;
}

std::string schedule_table(Algorithm algorithm, int workers, std::span<const int> hosts) {
  struct Line {
    int worker;
    Hop hop;
  };
  std::vector<Line> lines;
  int chunks = 1;
  for (int worker = 0; worker < workers; ++worker) {
    const Schedule schedule = all_reduce_schedule(algorithm, workers, worker, hosts);
    chunks = schedule.chunks;
    for (const Hop& hop : schedule.hops)
      if (hop.direction == Direction::send) lines.push_back({worker, hop});
  }
  std::stable_sort(lines.begin(), lines.end(),
                   [](const Line& a, const Line& b) { return a.hop.round < b.hop.round; });
  std::string table = fmt::format("{} all_reduce, {}, data in {}\n", to_string(algorithm),
                                  counted(workers, "worker"), counted(chunks, "chunk"));
  table += fmt::format("{:>5}  {:>6}  {:>10}  {:>6}  {}\n", "round", "worker", "sends", "to",
                       "which will");
  for (const auto& [worker, hop] : lines) {
    const std::string range =
        hop.last_chunk - hop.first_chunk == 1
            ? fmt::format("chunk {}", hop.first_chunk)
            : fmt::format("chunks {}-{}", hop.first_chunk, hop.last_chunk - 1);
    table += fmt::format("{:>5}  {:>6}  {:>10}  {:>6}  {}\n", hop.round + 1, worker, range,
                         hop.peer, hop.effect == Effect::add ? "add it" : "put it in place");
  }
  return table;
}

}  // namespace artel::comm
