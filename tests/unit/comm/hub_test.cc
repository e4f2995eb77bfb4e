#include "artel/comm/control/hub.h"

#include <gtest/gtest.h>

#include <chrono>
#include <future>

#include "artel/comm/control/control.h"

namespace artel::comm::control {
namespace {

// Rank 0 listens before it introduces itself, so others may come first.
TEST(Hub, ANewcomerThatIsFasterThanRankZeroIsSentToTheDoors) {
  auto hub =
      std::make_unique<Hub>(HubOptions{.endpoint = {"127.0.0.1", 0}, .token = "secret", .size = 2});
  const std::string address = to_string(Endpoint{"127.0.0.1", hub->port()});
  const auto come = [&](int rank, const std::string& door, std::unique_ptr<Hub> own = nullptr) {
    return std::make_unique<Control>(ControlOptions{.address = address,
                                                    .token = "secret",
                                                    .rank = rank,
                                                    .size = 2,
                                                    .door = door,
                                                    .deadline = Deadline::after(60)},
                                     std::move(own));
  };
  const auto first = come(kAnyRank, "door of 1");
  auto newcomer = std::async(std::launch::async, [&]() -> std::vector<std::string> {
    try {
      come(kAnyRank, "door of the newcomer");
    } catch (const UnderWay& under_way) {
      return under_way.doors;
    } catch (const Error& error) {
      return {error.what()};
    }
    return {"got a place"};
  });
  newcomer.wait_for(std::chrono::milliseconds(300));  // it is very likely to come before rank 0
  const auto rank_zero = come(0, "door of 0", std::move(hub));
  EXPECT_EQ(newcomer.get(), (std::vector<std::string>{"door of 0", "door of 1"}));
}

}  // namespace
}  // namespace artel::comm::control
