// The guarantees of a handshake, and attacks on it: without a socket, and at a hub.
#include "artel/comm/connection/handshake.h"

#include <gtest/gtest.h>
#include <sys/socket.h>

#include <future>

#include "artel/base/error.h"
#include "artel/base/random.h"
#include "artel/base/secret.h"
#include "artel/comm/control/control.h"
#include "tests/support/error_of.h"

namespace artel::comm {
namespace {

constexpr Protocol kTestProtocol = {0x12345678, 3, "protocol"};

TEST(Secret, IsTheDigestThatOthersCompute) {
  // RFC 4231, test cases 1 and 2.
  EXPECT_EQ(to_hex(keyed_digest(std::string(20, '\x0b'), "Hi There")),
            "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7");
  EXPECT_EQ(to_hex(keyed_digest("Jefe", "what do ya want for nothing?")),
            "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
  EXPECT_NE(keyed_digest("", "message"), keyed_digest("key", "message"));
  EXPECT_NE(random_bytes(32), random_bytes(32));
  EXPECT_TRUE(same_secret("abc", "abc"));
  EXPECT_FALSE(same_secret("abc", "abd"));
  EXPECT_FALSE(same_secret("abc", "ab"));
}

TEST(Handshake, PartsAreNotJustJoined) {
  const RunKey key("t");
  EXPECT_NE(key.digest({"ab", "c"}), key.digest({"a", "bc"}));
  EXPECT_NE(key.digest({"a"}), key.digest({"a", ""}));
}

TEST(Handshake, BothSidesBelieveEachOtherWithTheSameToken) {
  const RunKey key("secret");
  Challenger listener(kTestProtocol);
  Answerer caller(kTestProtocol, key, "topic", "rank 3");
  const Challenger::Verdict verdict =
      listener.judge(key, "topic", caller.answer(listener.challenge()));
  EXPECT_EQ(verdict.objection, "");
  EXPECT_EQ(verdict.claims, "rank 3");
  EXPECT_TRUE(caller.believes(listener.proof(key)));
}

TEST(Handshake, AnotherTokenIsRefusedOnBothSides) {
  Challenger listener(kTestProtocol);
  Answerer caller(kTestProtocol, RunKey("mine"), "topic", "rank 3");
  const Challenger::Verdict verdict =
      listener.judge(RunKey("theirs"), "topic", caller.answer(listener.challenge()));
  EXPECT_EQ(verdict.objection, "wrong token; it belongs to another run");
  EXPECT_EQ(verdict.claims, "");
  EXPECT_FALSE(caller.believes(listener.proof(RunKey("theirs"))));
  EXPECT_FALSE(caller.believes(""));
}

TEST(Handshake, ARepeatedAnswerIsRefused) {
  const RunKey key("secret");
  Challenger first(kTestProtocol), second(kTestProtocol);
  const std::string answer =
      Answerer(kTestProtocol, key, "topic", "rank 3").answer(first.challenge());
  EXPECT_EQ(first.judge(key, "topic", answer).objection, "");
  EXPECT_EQ(second.judge(key, "topic", answer).objection, "wrong token; it belongs to another run");
  EXPECT_EQ(first.judge(key, "topic", answer).objection, "it has answered before");
}

TEST(Handshake, ChangedClaimsAndTopicsAreRefused) {
  const RunKey key("secret");
  const auto judge = [&](const std::string& topic, auto&& change) {
    Challenger listener(kTestProtocol);
    std::string answer =
        Answerer(kTestProtocol, key, "topic", "rank 3").answer(listener.challenge());
    change(answer);
    return listener.judge(key, topic, answer).objection;
  };
  EXPECT_EQ(judge("topic", [](std::string&) {}), "");
  EXPECT_NE(judge("other", [](std::string&) {}), "");
  EXPECT_NE(judge("topic", [](std::string& answer) { answer.back() = '0'; }), "");
  EXPECT_NE(judge("topic", [](std::string& answer) { answer += 'x'; }), "");
  EXPECT_EQ(judge("topic", [](std::string& answer) { answer.resize(50); }),
            "its answer is too short");
}

TEST(Handshake, AProofCannotBeReflected) {
  const RunKey key("secret");
  // A process without the token answers a caller's claims by repeating the caller's messages.
  Challenger listener(kTestProtocol);
  Answerer caller(kTestProtocol, key, "topic", "");
  const std::string answer = caller.answer(listener.challenge());
  EXPECT_FALSE(caller.believes(answer.substr(40, kDigestBytes)));
}

TEST(Handshake, NamesBothVersions) {
  const RunKey key("secret");
  Challenger listener(kTestProtocol);
  Protocol newer = kTestProtocol;
  newer.version = 9;
  Answerer caller(newer, key, "topic", "");
  EXPECT_EQ(listener.judge(key, "topic", caller.answer(listener.challenge())).objection,
            "different versions: got protocol 9, expected 3; try the same artel on all machines");
  newer.magic = 1;
  EXPECT_THROW(Answerer(newer, key, "topic", "").answer(listener.challenge()), Error);
}

TEST(Handshake, NoiseIsNeverBelieved) {
  Random random{7};
  const RunKey key("secret");
  for (int round = 0; round < 20'000; ++round) {
    Challenger listener(kTestProtocol);
    Answerer caller(kTestProtocol, key, "topic", "claims");
    std::string answer = caller.answer(listener.challenge());
    const std::string original = answer;
    if (random.below(4) == 0) answer.resize(random.below(answer.size() + 8));
    for (uint64_t i = 1 + random.below(4); i > 0 && !answer.empty(); --i)
      answer[random.below(answer.size())] = static_cast<char>(random.next_u32());
    EXPECT_EQ(listener.judge(key, "topic", answer).objection.empty(), answer == original);
    std::string challenge = listener.challenge();
    challenge.resize(random.below(60));
    try {
      caller.answer(challenge);
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::communication);
    }
  }
}

// The messages of the hub, one at a time.
class Conversation {
 public:
  explicit Conversation(uint16_t port)
      : stream_(control::connect_to({"127.0.0.1", port}, Deadline::after(60))) {}

  control::Frame hear() {
    const Deadline deadline = Deadline::after(60);
    while (!deadline.passed()) {
      if (auto frame = reader_.next()) return *frame;
      std::string bytes;
      if (!stream_.receive_within(1, bytes)) break;
      reader_.feed(bytes);
    }
    return {control::FrameType::leave, "nothing more came"};
  }

  void say(const control::Frame& frame) { stream_.send_all(encode(frame), Deadline::after(60)); }

 private:
  Stream stream_;
  control::FrameReader reader_;
};

class AttackOnAHub : public testing::Test {
 protected:
  control::Hub hub_{{.endpoint = {"127.0.0.1", 0}, .token = "secret", .size = 3}};
  std::string claims_ = to_body(control::Hello{.rank = 1, .size = 3, .host = "h", .process = 1});
};

TEST_F(AttackOnAHub, ASniffedHandshakeIsOfNoUse) {
  // An eavesdropper records rank 1's handshake and replays it, as rank 1 and unchanged.
  Conversation real(hub_.port());
  Answerer caller(control::kProtocol, RunKey("secret"), "hello", claims_);
  const control::Frame sniffed = {control::FrameType::hello, caller.answer(real.hear().body)};
  real.say(sniffed);
  const control::Frame proof = real.hear();
  EXPECT_EQ(proof.type, control::FrameType::proof);
  EXPECT_TRUE(caller.believes(proof.body));

  Conversation replay(hub_.port());
  EXPECT_EQ(replay.hear().type, control::FrameType::challenge);
  replay.say(sniffed);
  const control::Frame refusal = replay.hear();
  EXPECT_EQ(refusal.type, control::FrameType::refusal);
  EXPECT_EQ(refusal.body, "wrong token; it belongs to another run");
  EXPECT_EQ(replay.hear().body, "nothing more came");
}

TEST_F(AttackOnAHub, WithoutTheTokenNothingIsLearned) {
  for (const std::string token : {"", "Secret", "secret "}) {
    Conversation guess(hub_.port());
    Answerer caller(control::kProtocol, RunKey(token), "hello", claims_);
    guess.say({control::FrameType::hello, caller.answer(guess.hear().body)});
    EXPECT_EQ(guess.hear().type, control::FrameType::refusal) << token;
    EXPECT_EQ(guess.hear().body, "nothing more came");
  }
  // One that does not answer the challenge, but sends other messages.
  Conversation skips(hub_.port());
  skips.say({control::FrameType::failure, to_body(control::Failure{ErrorKind::io, "fake"})});
  EXPECT_EQ(skips.hear().type, control::FrameType::challenge);
  EXPECT_EQ(skips.hear().body, "nothing more came");
}

TEST(AttackOnARank, WhoeverListensWithoutTheTokenIsNotRankZero) {
  const FileHandle listener = control::listen_at({"127.0.0.1", 0});
  const uint16_t port = control::port_of(listener.get());
  auto rank = std::async(std::launch::async, [&] {
    return error_of([&] {
      control::Control({.address = fmt::format("127.0.0.1:{}", port),
                        .token = "secret",
                        .rank = 1,
                        .size = 2,
                        .deadline = Deadline::after(60)});
    });
  });
  FileHandle socket;
  while (socket.get() < 0) socket = FileHandle(accept(listener.get(), nullptr, nullptr));
  Challenger fake(control::kProtocol);
  Stream stream(std::move(socket));
  stream.send_all(control::encode({control::FrameType::challenge, fake.challenge()}) +
                      control::encode({control::FrameType::proof, random_bytes(32)}),
                  Deadline::after(60));
  EXPECT_EQ(rank.get(), fmt::format("[comm] the process at 127.0.0.1:{} does not know the run's "
                                    "token: it is not rank 0 of this run",
                                    port));
}

TEST(Token, MayBeMissingWhereTheKernelNamesTheUserOnly) {
  EXPECT_NO_THROW(control::require_token(control::parse_endpoint("@name"), ""));
  // On the loopback interface, too: any user of the machine can connect there.
  for (const char* place : {"127.0.0.1:1", "[::1]:1", "localhost:1", "192.0.2.1:1", "0.0.0.0:1"}) {
    EXPECT_THROW(control::require_token(control::parse_endpoint(place), ""), Error) << place;
    EXPECT_NO_THROW(control::require_token(control::parse_endpoint(place), "t")) << place;
  }
}

}  // namespace
}  // namespace artel::comm
