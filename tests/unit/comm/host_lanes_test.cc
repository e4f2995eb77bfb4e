// The canonical sum between hosts: who adds what, its bits, and the bytes on each host's wire.
#include "artel/comm/collectives/host_lanes.h"

#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include <bit>
#include <cstring>
#include <map>
#include <random>

#include "artel/comm/collectives/balance.h"
#include "ranks.h"

namespace artel::comm {
namespace {

std::vector<LaneRange> ranges_of(const LaneLayout& layout) {
  std::vector<LaneRange> ranges;
  for (size_t rank = 0; rank < layout.lanes_of_rank.size(); ++rank)
    ranges.push_back(layout.range(static_cast<int>(rank)));
  return ranges;
}

std::vector<int> hosts_of(const std::string& map) {
  std::vector<int> hosts;
  for (const char host : map) hosts.push_back(host - '0');
  return hosts;
}

HostLanes plan_of(const LaneLayout& layout, const std::string& map) {
  return {layout.lanes, ranges_of(layout), hosts_of(map)};
}

TEST(HostLanes, AddUpWholeSubtreesFirst) {
  const HostLanes plan = plan_of(LaneLayout::even(8, 4), "0011");
  EXPECT_EQ(plan.hosts(), 2);
  EXPECT_EQ(plan.stripes(), 2);
  ASSERT_EQ(plan.tree().nodes().size(), 2u);
  EXPECT_EQ(plan.tree().nodes()[0], (LaneRange{0, 4}));
  ASSERT_EQ(plan.sums(1).size(), 1u);
  EXPECT_EQ(plan.sums(1)[0].parts.size(), 2u);
  EXPECT_EQ(plan.sums(1)[0].parts[1].rank, 3);
  EXPECT_EQ(plan.stripe_of(3), 1);
}

TEST(HostLanes, TheSmallestHostSaysHowManyRanksExchange) {
  const HostLanes plan = plan_of(LaneLayout::even(8, 4), "0001");
  EXPECT_EQ(plan.stripes(), 1);
  EXPECT_EQ(plan.stripe_of(0), 0);
  EXPECT_EQ(plan.stripe_of(1), -1);
  EXPECT_EQ(plan.stripe_of(3), 0);
}

TEST(HostLanes, SendFewPartialSumsWhereverLanesAreCut) {
  std::mt19937 random(7);
  for (int trial = 0; trial < 300; ++trial) {
    const int lanes = 2 + static_cast<int>(random() % 200);
    const int first = 1 + static_cast<int>(random() % (lanes - 1));
    // Three ranks on the first host, two on the second.
    LaneLayout layout{lanes,
                      {first / 3, first / 2 - first / 3, first - first / 2, (lanes - first) / 2,
                       lanes - first - (lanes - first) / 2}};
    const HostLanes plan = plan_of(layout, "00011");
    const size_t limit = 2 * std::bit_width(static_cast<unsigned>(lanes));
    for (int host = 0; host < 2; ++host) {
      EXPECT_LE(plan.sums(host).size(), limit);
      // Every node of every rank is part of one sum.
      std::map<int, size_t> held;
      for (const HostLanes::Sum& sum : plan.sums(host))
        for (const auto& part : sum.parts) ++held[part.rank];
      for (const int rank : plan.ranks(host))
        EXPECT_EQ(held[rank], layout.subtrees(rank).size()) << lanes << " lanes, rank " << rank;
    }
  }
}

float value_of(int lane, size_t i) {
  const auto bits = static_cast<uint32_t>((lane + 1) * 2654435761u + i * 40503u);
  return std::ldexp(static_cast<float>(bits % 100003) - 50000.0f, static_cast<int>(bits % 7) - 9);
}

std::vector<float> canonical_sum(int lanes, size_t count) {
  std::vector<std::vector<float>> values(static_cast<size_t>(lanes));
  std::vector<LaneRange> leaves;
  std::vector<const std::byte*> sources;
  for (int lane = 0; lane < lanes; ++lane) {
    auto& own = values[static_cast<size_t>(lane)];
    for (size_t i = 0; i < count; ++i) own.push_back(value_of(lane, i));
    leaves.push_back({lane, lane + 1});
    sources.push_back(reinterpret_cast<const std::byte*>(own.data()));
  }
  std::vector<float> sum(count);
  auto* const target = reinterpret_cast<std::byte*>(sum.data());
  LaneTree(lanes, leaves).add(sources, {&target, 1}, ElementType::f32, count);
  return sum;
}

// The partial sums of a rank, one buffer for each subtree.
std::vector<std::vector<float>> partials_of(const LaneLayout& layout, int rank, size_t count) {
  std::vector<std::vector<float>> partials;
  for (const LaneRange& subtree : layout.subtrees(rank)) {
    std::vector<std::vector<float>> lanes;
    std::vector<const std::byte*> sources;
    for (int lane = subtree.first; lane < subtree.last; ++lane) {
      auto& own = lanes.emplace_back();
      for (size_t i = 0; i < count; ++i) own.push_back(value_of(lane, i));
    }
    for (const auto& own : lanes) sources.push_back(reinterpret_cast<const std::byte*>(own.data()));
    auto& sum = partials.emplace_back(count);
    add_lanes(subtree, sources, reinterpret_cast<std::byte*>(sum.data()), ElementType::f32, count);
  }
  return partials;
}

struct HostCase {
  std::string transport, hosts;
  LaneLayout layout;
};

void PrintTo(const HostCase& each, std::ostream* out) {
  *out << each.transport << " on hosts " << each.hosts << ", lanes "
       << fmt::format("{}", fmt::join(each.layout.lanes_of_rank, " "));
}

std::vector<HostCase> host_cases() {
  std::vector<HostCase> all;
  const auto add = [&](const std::string& hosts, const LaneLayout& layout) {
    for (const char* transport : {"gloo", "tcp"}) all.push_back({transport, hosts, layout});
  };
  for (const char* hosts : {"0011", "0101", "001", "0001", "011122"}) {
    const int ranks = static_cast<int>(std::strlen(hosts));
    for (const int lanes : {ranks, 13}) add(hosts, LaneLayout::even(lanes, ranks));
  }
  add("00112", {16, {1, 5, 7, 0, 3}});    // uneven, one rank without lanes
  add("01234", LaneLayout::even(64, 5));  // many partial sums, different numbers on each rank
  return all;
}

class BetweenHosts : public testing::TestWithParam<HostCase> {};
INSTANTIATE_TEST_SUITE_P(Maps, BetweenHosts, testing::ValuesIn(host_cases()));

TEST_P(BetweenHosts, SumsHaveTheCanonicalBits) {
  const auto& [transport, hosts, layout] = GetParam();
  const int ranks = static_cast<int>(hosts.size());
  for (const size_t count : {size_t{0}, size_t{1}, size_t{1003}, size_t{700001}}) {
    const std::vector<float> expected = canonical_sum(layout.lanes, count);
    with_ranks(
        ranks,
        [&, &layout = layout](Group& group) {
          auto partials = partials_of(layout, group.rank(), count);
          if (partials.empty()) partials.emplace_back(count);
          std::vector<std::byte*> data;
          for (auto& partial : partials)
            data.push_back(reinterpret_cast<std::byte*>(partial.data()));
          const std::span given(data.data(), layout.subtrees(group.rank()).size());
          group.lane_reduce(layout, given, {data[0], count * sizeof(float)}, ElementType::f32);
          EXPECT_EQ(std::memcmp(data[0], expected.data(), count * sizeof(float)), 0)
              << "rank " << group.rank() << ", " << count << " floats";
        },
        {.transport = transport + " on hosts " + hosts, .token = "hosts"});
  }
}

TEST_P(BetweenHosts, PartsHaveTheCanonicalBits) {
  const auto& [transport, hosts, layout] = GetParam();
  const auto ranks = hosts.size();
  const size_t count = 300007;
  const std::vector<float> expected = canonical_sum(layout.lanes, count);
  std::vector<size_t> sizes(ranks), offsets(ranks + 1);
  for (size_t rank = 0; rank <= ranks; ++rank)
    offsets[rank] = count * rank * rank / (ranks * ranks);
  for (size_t rank = 0; rank < ranks; ++rank)
    sizes[rank] = (offsets[rank + 1] - offsets[rank]) * sizeof(float);
  with_ranks(static_cast<int>(ranks),
             [&, &layout = layout](Group& group) {
               auto partials = partials_of(layout, group.rank(), count);
               if (partials.empty()) partials.emplace_back(count);
               std::vector<std::byte*> data;
               for (auto& partial : partials)
                 data.push_back(reinterpret_cast<std::byte*>(partial.data()));
               const std::span given(data.data(), layout.subtrees(group.rank()).size());
               group.lane_reduce_scatter(layout, given, {data[0], count * sizeof(float)},
                                         ElementType::f32, sizes);
               const auto rank = static_cast<size_t>(group.rank());
               EXPECT_EQ(std::memcmp(data[0] + offsets[rank] * sizeof(float),
                                     expected.data() + offsets[rank], sizes[rank]),
                         0)
                   << "rank " << rank;
             },
             {.transport = transport + " on hosts " + hosts, .token = "hosts"});
}

// A host sends (H-1)/H of each of its partial sums and of the totals, however many ranks it has.
TEST_P(BetweenHosts, EachWireCarriesWhatIsPromised) {
  const auto& [transport, hosts, layout] = GetParam();
  const size_t count = 1 << 20;
  const HostLanes plan = plan_of(layout, hosts);
  std::vector<std::atomic<int64_t>> sent(static_cast<size_t>(plan.hosts()));
  with_ranks(static_cast<int>(hosts.size()),
             [&, &layout = layout](Group& group) {
               auto partials = partials_of(layout, group.rank(), count);
               if (partials.empty()) partials.emplace_back(count);
               std::vector<std::byte*> data;
               for (auto& partial : partials)
                 data.push_back(reinterpret_cast<std::byte*>(partial.data()));
               const std::span given(data.data(), layout.subtrees(group.rank()).size());
               const int64_t before = group.traffic_between_hosts().sent_bytes;
               group.lane_reduce(layout, given, {data[0], count * sizeof(float)}, ElementType::f32);
               sent[static_cast<size_t>(plan.host_of(group.rank()))] +=
                   group.traffic_between_hosts().sent_bytes - before;
               group.barrier();
             },
             {.transport = transport + " on hosts " + hosts, .token = "hosts"});
  const double number = plan.hosts();
  for (int host = 0; host < plan.hosts(); ++host) {
    const double promised = (static_cast<double>(plan.sums(host).size()) + 1) * (number - 1) /
                            number * static_cast<double>(count * sizeof(float));
    EXPECT_NEAR(static_cast<double>(sent[static_cast<size_t>(host)]), promised, 0.01 * promised)
        << "host " << host;
  }
}

}  // namespace
}  // namespace artel::comm
