#include "artel/comm/executor.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace artel::comm {
namespace {

// A transport of rank 0 without peers: sends leave at once, and every receive completes. It records
// the number of bytes sent before each arrival.
class Recorder : public Transport {
 public:
  Recorder() { hosts_ = {"here", "there"}; }

  std::string_view name() const override { return "recorder"; }
  std::unique_ptr<Transfer> send(int, uint64_t, std::span<const std::byte> data) override {
    sent += data.size();
    return std::make_unique<Done>([] {});
  }
  std::unique_ptr<Transfer> receive(int, uint64_t, std::span<std::byte> data) override {
    std::fill(data.begin(), data.end(), std::byte{});
    return std::make_unique<Done>([this, bytes = data.size()] {
      most_ahead = std::max(most_ahead, sent - received);
      received += bytes;
    });
  }
  void set_phase(std::string_view) override {}
  PeerStatus status(int) override { return {}; }
  void abort(ErrorKind, std::string_view) noexcept override {}
  void check() override {}

  size_t sent = 0;
  size_t received = 0;
  size_t most_ahead = 0;  // bytes that were sent and not yet received, at any arrival

 private:
  class Done : public Transfer {
   public:
    explicit Done(std::function<void()> note) : note_(std::move(note)) {}
    bool wait(double) override {
      note_();
      return true;
    }

   private:
    std::function<void()> note_;
  };
};

// Runs rank 0's part of a schedule over chunks of these sizes.
void run(Recorder& transport, const Schedule& schedule, std::vector<size_t> offsets) {
  const Operation operation;
  const WatchOptions watch;
  Patience patience(transport, operation, Deadline::never(), watch);
  std::vector<std::byte> data(offsets.back());
  const std::vector<int> members{0, 1};
  execute(schedule, {data.data(), offsets, data.data(), offsets}, {members, 1}, patience,
          ElementType::f32, {});
}

constexpr size_t kMiB = 1 << 20;

TEST(Executor, InARingARankSendsALittleMoreThanItHasReceived) {
  Recorder transport;
  run(transport, all_reduce_schedule(Algorithm::ring, 2, 0, {}), {0, 8 * kMiB, 16 * kMiB});
  EXPECT_EQ(transport.sent, 16 * kMiB);
  EXPECT_EQ(transport.received, 16 * kMiB);
  EXPECT_EQ(transport.most_ahead, kSendAhead);
}

TEST(Executor, NobodyWaitsForMoreThanTheOthersHave) {
  // Rank 0 sends a chunk of 8 MiB for one of 4 bytes: held back, the long one would never leave.
  Recorder transport;
  run(transport, reduce_scatter_schedule(2, 0), {0, 4, 8 * kMiB + 4});
  EXPECT_EQ(transport.sent, 8 * kMiB);
  EXPECT_EQ(transport.most_ahead, 8 * kMiB);
}

TEST(Executor, WhoOnlySendsIsNotHeldBack) {
  Recorder transport;
  run(transport, broadcast_schedule(2, 0, 0), {0, 16 * kMiB});
  EXPECT_EQ(transport.sent, 16 * kMiB);
  EXPECT_EQ(transport.received, 0u);
}

}  // namespace
}  // namespace artel::comm
