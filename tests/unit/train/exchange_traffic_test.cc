// Naming an algorithm runs it: what each link carries, compared with the schedule.
#include "tests/unit/comm/ranks.h"
#include "tests/unit/train/link_loads.h"

namespace artel {
namespace {

// By sender and receiver.
Links links_measured(const LinkCase& c, const std::string& transport, int buckets) {
  Links links(c.hosts.size());
  comm::with_ranks(c.size(),
                   [&](comm::Group& connected) {
                     const int rank = connected.rank();
                     links[rank] = loads_measured(
                         c, std::make_shared<comm::Group>(std::move(connected)), buckets);
                   },
                   {.transport = transport + " on hosts " + c.hosts, .token = "links"});
  return links;
}

const std::vector<LinkCase>& cases() {
  static const std::vector<LinkCase> all = {
      {"auto", "exact", "0123"},          {"auto", "exact", "0011"},
      {"auto", "exact", "01234567"},      {"ring", "fast", "012"},
      {"ring", "fast", "01234"},          {"tree", "fast", "01234"},
      {"tree", "fast", "0123456"},        {"halving", "fast", "0123"},
      {"halving", "fast", "012345"},      {"hierarchical", "fast", "0011"},
      {"hierarchical", "fast", "000111"}, {"hierarchical", "exact", "0011"},
      {"coordinator", "exact", "0123"},   {"coordinator", "exact", "01234", 2}};
  return all;
}

class LinksOf : public testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(Transport, LinksOf, testing::Values("gloo", "tcp"));

// Gloo counts payloads; others add up to two heads of 24 bytes to each message.
TEST_P(LinksOf, EachStrategyAreThoseOfItsSchedule) {
  constexpr int kBuckets = 2;
  constexpr int64_t kHeads = 48;
  for (const LinkCase& c : cases()) {
    const Links expected = promised(c, kBuckets), found = links_measured(c, GetParam(), kBuckets);
    for (int from = 0; from < c.size(); ++from)
      for (int to = 0; to < c.size(); ++to) {
        const Load &want = expected[from][to], &got = found[from][to];
        const std::string link =
            fmt::format("{}: from {} to {} {}", GetParam(), from, to, c.text());
        // Hosts that add up first cut messages further, to keep the wire between them busy.
        const bool cut = c.has_shared_hosts();
        EXPECT_GE(got.messages, want.messages) << link;
        EXPECT_LE(got.messages, cut ? 2 * want.messages : want.messages) << link;
        EXPECT_GE(got.bytes, want.bytes) << link;
        const bool payload = GetParam() == std::string("gloo") && c.hosts[from] != c.hosts[to];
        const int64_t framed = payload ? 0 : kHeads * (got.messages + found[to][from].messages);
        EXPECT_LE(got.bytes, want.bytes + framed) << link;
      }
  }
}

// docs/strategies.md: bytes that a worker sends, or each of M machines.
TEST_P(LinksOf, EachStrategyCarryWhatTheTableOfStrategiesPromises) {
  const auto sent_by = [&](const LinkCase& c, char host) {
    const Links links = links_measured(c, GetParam(), 1);
    double bytes = 0;
    for (size_t from = 0; from < c.hosts.size(); ++from)
      for (size_t to = 0; to < c.hosts.size(); ++to)
        if (c.hosts[from] == host && c.hosts[to] != host)
          bytes += static_cast<double>(links[from][to].bytes);
    return bytes / static_cast<double>(kBytes);
  };
  constexpr double kHeads = 0.05;  // of small messages
  const auto share = [](double n) { return 2 * (n - 1) / n; };
  for (const char host : {'0', '1'}) {
    EXPECT_NEAR(sent_by({"auto", "exact", "0123"}, host), share(4), kHeads);
    EXPECT_NEAR(sent_by({"auto", "exact", "0011"}, host), share(2), kHeads);
    EXPECT_NEAR(sent_by({"hierarchical", "fast", "0011"}, host), share(2), kHeads);
    EXPECT_NEAR(sent_by({"hierarchical", "exact", "0011"}, host), share(2), kHeads);
    EXPECT_NEAR(sent_by({"hierarchical", "fast", "000111"}, host), share(2), kHeads);
    EXPECT_NEAR(sent_by({"hierarchical", "fast", "0001"}, host), share(2), kHeads);
    EXPECT_NEAR(sent_by({"hierarchical", "fast", "0111222"}, host), share(3), kHeads);
    EXPECT_NEAR(sent_by({"ring", "fast", "0123"}, host), share(4), kHeads);
    EXPECT_NEAR(sent_by({"halving", "fast", "0123"}, host), share(4), kHeads);
    EXPECT_LE(sent_by({"tree", "fast", "0123456"}, host), 3 + kHeads);
  }
  for (const char host : {'0', '1', '2', '3'})
    EXPECT_LE(sent_by({"coordinator", "exact", "0123"}, host), 3 + kHeads);
  EXPECT_NEAR(sent_by({"coordinator", "exact", "0123"}, '3'), 1, kHeads);
}

}  // namespace
}  // namespace artel
