#include "artel/comm/collectives/schedule.h"

#include <gtest/gtest.h>

#include <map>
#include <numeric>

#include "artel/base/error.h"

namespace artel::comm {
namespace {

using Vector = std::vector<int64_t>;

// Runs the schedules of all ranks round by round on vectors with one element for each chunk.
std::vector<Vector> simulate(const std::vector<Schedule>& schedules, std::vector<Vector> data) {
  int rounds = 0;
  for (const Schedule& schedule : schedules)
    for (const Hop& hop : schedule.hops) rounds = std::max(rounds, hop.round + 1);
  for (int round = 0; round < rounds; ++round) {
    std::map<std::pair<int, int>, std::pair<Hop, Vector>> wire;  // (from, to)
    const int size = static_cast<int>(schedules.size());
    for (int rank = 0; rank < size; ++rank)
      for (const Hop& hop : schedules[rank].hops)
        if (hop.round == round && hop.direction == Direction::send) {
          const Vector content(data[rank].begin() + hop.first_chunk,
                               data[rank].begin() + hop.last_chunk);
          EXPECT_TRUE(wire.insert({{rank, hop.peer}, {hop, content}}).second);
        }
    for (int rank = 0; rank < size; ++rank)
      for (const Hop& hop : schedules[rank].hops) {
        if (hop.round != round || hop.direction != Direction::receive) continue;
        const auto message = wire.find({hop.peer, rank});
        if (message == wire.end()) {
          ADD_FAILURE() << "round " << round << ": " << rank << " waits for " << hop.peer;
          continue;
        }
        const auto& [sent, content] = message->second;
        EXPECT_EQ(sent.first_chunk, hop.first_chunk);
        EXPECT_EQ(sent.last_chunk, hop.last_chunk);
        EXPECT_EQ(sent.effect, hop.effect);
        for (int chunk = hop.first_chunk; chunk < hop.last_chunk; ++chunk) {
          int64_t& target = data[rank][chunk];
          const int64_t value = content[chunk - hop.first_chunk];
          target = hop.effect == Effect::add ? target + value : value;
        }
        wire.erase(message);
      }
    EXPECT_TRUE(wire.empty()) << "a message of round " << round << " has no receiver";
  }
  return data;
}

// A different power of three for each (rank, chunk), so a wrong sum cannot be right by chance.
std::vector<Vector> distinct(int size, int chunks) {
  std::vector<Vector> data(size, Vector(chunks));
  int64_t value = 1;
  for (Vector& of_rank : data)
    for (int64_t& element : of_rank) element = value = value * 3 % 1000003;
  return data;
}

TEST(Schedule, EveryAllReduceAddsEverythingEverywhere) {
  for (const Algorithm algorithm : {Algorithm::ring, Algorithm::tree, Algorithm::halving,
                                    Algorithm::hierarchical, Algorithm::direct})
    for (int size = 1; size <= 17; ++size)
      for (const int per_host : {1, 2, 3}) {
        SCOPED_TRACE(
            fmt::format("{} of {} ranks, {} a host", to_string(algorithm), size, per_host));
        std::vector<int> hosts;
        for (int rank = 0; rank < size; ++rank) hosts.push_back(rank / per_host);
        std::vector<Schedule> schedules;
        for (int rank = 0; rank < size; ++rank)
          schedules.push_back(all_reduce_schedule(algorithm, size, rank, hosts));
        const auto data = distinct(size, schedules[0].chunks);
        Vector expected(schedules[0].chunks, 0);
        for (const Vector& of_rank : data)
          std::transform(expected.begin(), expected.end(), of_rank.begin(), expected.begin(),
                         std::plus<>());
        for (const Vector& result : simulate(schedules, data)) EXPECT_EQ(result, expected);
      }
}

TEST(Schedule, RingHasNMinusOneAddingAndNMinusOneReplacingHops) {
  const Schedule schedule = all_reduce_schedule(Algorithm::ring, 3, 0);
  EXPECT_EQ(schedule.chunks, 3);
  std::vector<Effect> effects;
  for (const Hop& hop : schedule.hops)
    if (hop.direction == Direction::receive) effects.push_back(hop.effect);
  EXPECT_EQ(effects, (std::vector{Effect::add, Effect::add, Effect::replace, Effect::replace}));
}

TEST(Schedule, RingOfTheLecture) {
  std::vector<Schedule> schedules;
  for (int rank = 0; rank < 3; ++rank)
    schedules.push_back(all_reduce_schedule(Algorithm::ring, 3, rank));
  // The first and the second element of each of the three chunks.
  const auto evens = simulate(schedules, {{5, 8, 42}, {9, 3, 8}, {8, 4, 7}});
  const auto odds = simulate(schedules, {{13, 19, 1}, {27, 15, 4}, {11, 2, 7}});
  for (int rank = 0; rank < 3; ++rank) {
    EXPECT_EQ(evens[rank], (Vector{22, 15, 57}));
    EXPECT_EQ(odds[rank], (Vector{51, 36, 12}));
  }
}

TEST(Schedule, RootedCollectivesReachEverybody) {
  for (int size = 1; size <= 9; ++size)
    for (int root = 0; root < size; ++root) {
      SCOPED_TRACE(fmt::format("{} ranks, root {}", size, root));
      std::vector<Schedule> down, up, out, in;
      for (int rank = 0; rank < size; ++rank) {
        down.push_back(broadcast_schedule(size, rank, root));
        up.push_back(reduce_schedule(size, rank, root));
        out.push_back(scatter_schedule(size, rank, root));
        in.push_back(gather_schedule(size, rank, root));
      }
      const auto single = distinct(size, 1);
      for (const Vector& result : simulate(down, single)) EXPECT_EQ(result, single[root]);
      int64_t sum = 0;
      for (const Vector& of_rank : single) sum += of_rank[0];
      EXPECT_EQ(simulate(up, single)[root][0], sum);
      const auto data = distinct(size, size);
      const auto scattered = simulate(out, data);
      const auto gathered = simulate(in, data);
      for (int rank = 0; rank < size; ++rank) {
        EXPECT_EQ(scattered[rank][rank], data[root][rank]);
        EXPECT_EQ(gathered[root][rank], data[rank][rank]);
      }
    }
}

TEST(Schedule, BytesOnTheWireAreOptimal) {
  // Ring and halving-doubling send 2(N-1)/N of the data from each rank.
  for (const Algorithm algorithm : {Algorithm::ring, Algorithm::halving})
    for (const int size : {2, 4, 8}) {
      const Schedule schedule = all_reduce_schedule(algorithm, size, size - 1);
      int sent = 0;
      for (const Hop& hop : schedule.hops)
        if (hop.direction == Direction::send) sent += hop.last_chunk - hop.first_chunk;
      EXPECT_EQ(sent * size, 2 * (size - 1) * schedule.chunks);
    }
}

TEST(Schedule, TableShowsTheHops) {
  EXPECT_EQ(schedule_table(Algorithm::ring, 2),
            "ring all_reduce, 2 workers, data in 2 chunks\n"
            "round  worker       sends      to  which will\n"
            "    1       0     chunk 1       1  add it\n"
            "    1       1     chunk 0       0  add it\n"
            "    2       0     chunk 0       1  put it in place\n"
            "    2       1     chunk 1       0  put it in place\n");
}

TEST(Schedule, NamesAreParsedAndSuggested) {
  EXPECT_EQ(algorithm_from_string("halving"), Algorithm::halving);
  EXPECT_EQ(algorithm_from_string("hierarchical"), Algorithm::hierarchical);
  EXPECT_EQ(algorithm_from_string("halving_doubling"), Algorithm::halving);
  EXPECT_EQ(algorithm_from_string("two_level"), Algorithm::hierarchical);
  try {
    algorithm_from_string("rign");
    FAIL();
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("did you mean 'ring'?"), std::string::npos);
  }
  EXPECT_THROW(all_reduce_schedule(Algorithm::native, 2, 0), Error);
  EXPECT_THROW(all_reduce_schedule(Algorithm::ring, 2, 2), Error);
}

}  // namespace
}  // namespace artel::comm
