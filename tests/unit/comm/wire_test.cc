#include "artel/comm/control/wire.h"

#include <gtest/gtest.h>

#include <fstream>

#include "artel/base/random.h"
#include "artel/comm/control/control.h"
#include "artel/comm/control/socket.h"
#include "ranks.h"

namespace artel::comm::control {
namespace {

TEST(FrameReader, ReadsMillionsOfSmallFrames) {
  const std::string frame = encode({FrameType::beat, {}});
  std::string bytes;
  while (bytes.size() < (8 << 20)) bytes += frame;
  FrameReader reader;
  reader.feed(bytes);
  reader.feed("rest");
  size_t frames = 0;
  while (frames * frame.size() < bytes.size()) {
    ASSERT_TRUE(reader.next());
    ++frames;
  }
  EXPECT_EQ(reader.pending(), 4u);
  EXPECT_EQ(reader.take_rest(), "rest");
  EXPECT_EQ(reader.pending(), 0u);
}

TEST(Wire, MessagesSurviveTheWire) {
  const Hello hello =
      hello_from(to_body(Hello{.rank = 3, .size = 8, .host = "n07", .process = 4242}));
  EXPECT_EQ(hello.rank, 3);
  EXPECT_EQ(hello.host, "n07");
  const auto table = table_from(to_body(std::vector<Member>{{"a", 1, "x"}, {"b", 2, ""}}));
  ASSERT_EQ(table.size(), 2);
  EXPECT_EQ(table[0].blob, "x");
  EXPECT_EQ(table[1].process, 2);
  const auto news = news_from(to_body(std::vector<Sign>{{0.5f, "backward", true}}));
  EXPECT_EQ(news[0].phase, "backward");
  EXPECT_TRUE(news[0].left);
  const RankVitals vitals = vitals_from(to_body(RankVitals{3, "12 steps"}));
  EXPECT_EQ(vitals.rank, 3);
  EXPECT_EQ(vitals.text, "12 steps");
  const Failure failure = failure_from(to_body(Failure{ErrorKind::timeout, "why"}));
  EXPECT_EQ(failure.kind, ErrorKind::timeout);
  EXPECT_EQ(failure.cause, "why");
}

TEST(Wire, FramesAreCutFromAStreamInAnyPieces) {
  const std::string stream = encode({FrameType::beat, "forward"}) + encode({FrameType::leave, ""});
  FrameReader reader;
  std::vector<Frame> frames;
  for (const char byte : stream) {
    reader.feed({&byte, 1});
    while (auto frame = reader.next()) frames.push_back(*frame);
  }
  ASSERT_EQ(frames.size(), 2);
  EXPECT_EQ(frames[0].body, "forward");
  EXPECT_EQ(frames[1].type, FrameType::leave);
}

TEST(Wire, ALengthBeyondTheLimitIsRefusedBeforeAnythingIsStored) {
  FrameReader reader;
  reader.feed("HTTP/1.1 200 OK");
  EXPECT_THROW(reader.next(), Error);
}

// Valid messages with random damage, and pure noise: a result or Error(corrupt), nothing else.
TEST(Wire, FuzzedMessagesNeverDoHarm) {
  Random random{99};
  const std::vector<std::string> seeds{
      to_body(Hello{.host = "h"}), to_body(std::vector<Member>{{"a", 1, "blob"}, {"b", 2, "blob"}}),
      to_body(std::vector<Sign>{{1, "p", false}, {2, "q", true}}), to_body(RankVitals{1, "text"}),
      to_body(Failure{ErrorKind::io, "cause"})};
  int refused = 0;
  for (int round = 0; round < 100'000; ++round) {
    std::string body = seeds[random.below(seeds.size())];
    if (random.below(4) == 0) body.resize(random.below(64));
    for (uint64_t i = random.below(6); i > 0 && !body.empty(); --i)
      body[random.below(body.size())] = static_cast<char>(random.next_u32());
    const auto attempt = [&](auto&& parse) {
      try {
        parse(body);
      } catch (const Error& error) {
        EXPECT_EQ(error.kind(), ErrorKind::corrupt);
        ++refused;
      }
    };
    attempt([](const std::string& text) { hello_from(text); });
    attempt([](const std::string& text) { table_from(text); });
    attempt([](const std::string& text) { news_from(text); });
    attempt([](const std::string& text) { vitals_from(text); });
    attempt([](const std::string& text) { failure_from(text); });
    attempt([](const std::string& text) {
      FrameReader reader;
      reader.feed(text);
      while (reader.next()) {
      }
    });
  }
  EXPECT_GT(refused, 100'000);
}

TEST(Wire, StrangersDoNotDisturbARendezvous) {
  const std::string address = free_address();
  std::atomic<bool> stop{false};
  std::thread stranger([&] {
    Random random{5};
    while (!stop) {
      try {
        Stream stream(connect_to(parse_endpoint(address), Deadline::after(1)));
        std::string noise(random.below(200), ' ');
        for (char& byte : noise) byte = static_cast<char>(random.next_u32());
        stream.send_all(noise, Deadline::after(1));
      } catch (const Error&) {
        continue;  // not there yet, or gone already
      }
    }
  });
  with_ranks(3, [](Group& group) { group.barrier(); }, {.transport = "gloo", .address = address});
  stop = true;
  stranger.join();
}

// Sockets that ask for any port never get one that a group was promised.
TEST(Endpoint, FreeOnesAreOutsideTheKernelsRange) {
  uint16_t first = 0;
  std::ifstream("/proc/sys/net/ipv4/ip_local_port_range") >> first;
  for (int i = 0; i < 100; ++i) {
    const Endpoint endpoint = free_endpoint("127.0.0.1");
    EXPECT_GE(endpoint.port, 1024);
    EXPECT_LT(endpoint.port, first);
    EXPECT_EQ(port_of(listen_at(endpoint).get()), endpoint.port);
  }
}

TEST(Endpoint, IsParsedStrictly) {
  EXPECT_EQ(parse_endpoint("10.0.0.1:29500").port, 29500);
  EXPECT_EQ(parse_endpoint("[::1]:80").host, "::1");
  for (const char* wrong : {"", "host", "host:", ":80", "host:0", "host:99999", "host:8x"})
    EXPECT_THROW(parse_endpoint(wrong), Error) << wrong;
}

}  // namespace
}  // namespace artel::comm::control
