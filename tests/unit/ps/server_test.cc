#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "artel/base/error.h"
#include "artel/ps/squares.h"
#include "tests/unit/ps/servers.h"

namespace artel::ps {
namespace {

std::vector<float> filled(size_t count, float value) { return std::vector<float>(count, value); }

TEST(Server, AddsWhatBelongsTogether) {
  for (const char* transport : {"shm", "gloo"})
    with_servers(
        {.workers = 3,
         .servers = 2,
         .keys = 100,
         .setup = {.segments = weights_of(100).segments, .rule = {{"name", "sgd"}}, .lanes = 3},
         .transport = transport},
        [](Client& client, comm::Group&) {
          const std::vector<float> gradient = filled(100, 1.0f + client.worker());
          std::vector<float> got(100);
          for (int iteration = 1; iteration <= 4; ++iteration)
            client.run({.flags = finishes,
                        .iteration = iteration,
                        .keys = {0, 100},
                        .values = {gradient.data()},
                        .lanes = {client.worker(), client.worker() + 1},
                        .learning_rate = 0.5f,
                        .sink = [&](size_t offset, std::span<const float> values, bool) {
                          std::copy(values.begin(), values.end(), got.begin() + offset);
                        }});
          EXPECT_EQ(got, filled(100, -0.5f * 4 * 6));
          EXPECT_EQ(client.report().staleness, (std::map<int64_t, int64_t>{{0, 24}}));
        });
}

TEST(Server, AppliesEachPushAtOnceWhenApart) {
  ps::Setup setup = weights_of(50);
  setup.together = false;
  setup.delay.reset();
  with_servers({.workers = 2, .servers = 3, .keys = 50, .setup = setup},
               [](Client& client, comm::Group& workers) {
                 const std::vector<float> gradient = filled(50, 1);
                 for (int iteration = 1; iteration <= 10; ++iteration)
                   client.run({.flags = finishes,
                               .iteration = iteration,
                               .keys = {0, 50},
                               .values = {gradient.data()},
                               .learning_rate = 1});
                 workers.barrier();
                 EXPECT_EQ(pull_all(client), filled(50, -20));
               });
}

// A pull of a batch's own features, and pushes of lists that are sent once.
TEST(Server, SparseKeysAndTheirCache) {
  ps::Setup setup = weights_of(1000);
  setup.together = false;
  with_servers({.workers = 1, .servers = 2, .keys = 1000, .setup = setup},
               [](Client& client, comm::Group&) {
                 const std::vector<uint64_t> keys = {3, 4, 5, 700, 999};
                 std::vector<float> gradient = {1, 2, 3, 4, 5};
                 int64_t bytes[3] = {};
                 for (int iteration = 1; iteration <= 3; ++iteration) {
                   const int64_t before = client.traffic().sent_bytes;
                   client.run({.kind = Kind::push,
                               .flags = finishes | remember,
                               .iteration = iteration,
                               .keys = {0, 1000},
                               .list = keys,
                               .values = {gradient.data()},
                               .learning_rate = 1});
                   bytes[iteration - 1] = client.traffic().sent_bytes - before;
                 }
                 EXPECT_EQ(bytes[0] - bytes[1], 5 * 8);
                 EXPECT_EQ(bytes[1], bytes[2]);
                 std::vector<float> got(5);
                 client.run({.kind = Kind::pull,
                             .keys = {0, 1000},
                             .list = keys,
                             .sink = [&](size_t offset, std::span<const float> values, bool) {
                               std::copy(values.begin(), values.end(), got.begin() + offset);
                             }});
                 EXPECT_EQ(got, (std::vector<float>{-3, -6, -9, -12, -15}));
               });
}

// Workers in step push the same rows: the canonical sum over lanes, and no other key changes.
TEST(Server, AddsListedRowsInTheCanonicalOrder) {
  const std::vector<uint64_t> keys = {10, 11, 12, 40, 41, 42, 70, 71, 72};
  const auto gradient_of = [&](int lane) {
    std::vector<float> values;
    for (size_t i = 0; i < keys.size(); ++i)
      values.push_back(std::sin(static_cast<float>(i) + 10 * static_cast<float>(lane)) * 1e3f);
    return values;
  };
  for (const char* transport : {"shm", "gloo"})
    with_servers({.workers = 3,
                  .servers = 2,
                  .keys = 100,
                  .setup = {.segments = weights_of(100).segments,
                            .rule = {{"name", "adam"}, {"lazy_rows", "true"}},
                            .lanes = 3},
                  .transport = transport},
                 [&](Client& client, comm::Group&) {
                   const std::vector<float> own = gradient_of(client.worker());
                   std::vector<float> got(keys.size());
                   const auto step = [&](int iteration, std::span<const uint64_t> list) {
                     client.run({.flags = same_list,
                                 .iteration = iteration,
                                 .keys = {0, 100},
                                 .list = list,
                                 .values = {own.data()},
                                 .lanes = {client.worker(), client.worker() + 1},
                                 .learning_rate = 0.5f,
                                 .sink = [&](size_t offset, std::span<const float> values, bool) {
                                   std::copy(values.begin(), values.end(), got.begin() + offset);
                                 }});
                   };
                   step(1, keys);
                   std::vector<float> sum = gradient_of(0);
                   for (size_t i = 0; i < sum.size(); ++i) {
                     sum[i] += gradient_of(1)[i];
                     sum[i] += gradient_of(2)[i];
                     // The first step of Adam has the length of the rate.
                     EXPECT_NEAR(got[i], sum[i] > 0 ? -0.5f : 0.5f, 1e-4) << i;
                   }
                   // An empty list counts as an update on every server, and changes nothing.
                   step(2, {});
                   const std::vector<float> all = pull_all(client);
                   for (uint64_t key = 0; key < all.size(); ++key) {
                     const auto at = std::ranges::find(keys, key);
                     EXPECT_EQ(all[key], at == keys.end() ? 0 : got[at - keys.begin()]) << key;
                   }
                 });
}

TEST(Server, RefusesListsThatDiffer) {
  const std::vector<std::string> errors = run_scene(
      {.workers = 2,
       .servers = 1,
       .setup = {.segments = weights_of(100).segments, .rule = {{"name", "sgd"}}, .lanes = 2}},
      [](Client& client, comm::Group&) {
        const std::vector<uint64_t> keys = {3, 4 + static_cast<uint64_t>(client.worker())};
        const std::vector<float> gradient = {1, 2};
        client.run({.flags = same_list,
                    .iteration = 1,
                    .keys = {0, 100},
                    .list = keys,
                    .values = {gradient.data()},
                    .lanes = {client.worker(), client.worker() + 1}});
      });
  const bool named = std::ranges::any_of(errors, [](const std::string& error) {
    return error.find("other keys of 0 to 100") != std::string::npos;
  });
  EXPECT_TRUE(named) << errors.front();
}

// Two tensors, one on each server: a push takes effect only when some worker says how to scale it.
TEST(Server, HoldsASumBackUntilItIsReleased) {
  for (const char* transport : {"shm", "gloo"})
    with_servers(
        {.workers = 2,
         .servers = 2,
         .keys = 64,
         .setup = {.segments = {{.name = "a", .keys = {0, 32}}, {.name = "b", .keys = {32, 64}}},
                   .rule = {{"name", "sgd"}},
                   .lanes = 2},
         .transport = transport},
        [](Client& client, comm::Group& workers) {
          const std::vector<float> gradient = filled(64, 1.0f + client.worker());
          Squares squares;
          client.run({.kind = Kind::push,
                      .flags = finishes | held,
                      .iteration = 1,
                      .keys = {0, 64},
                      .values = {gradient.data()},
                      .lanes = {client.worker(), client.worker() + 1},
                      .learning_rate = 1,
                      .text_sink = [&](std::string_view text) {
                        squares.merge(squares_from_text(text));
                      }});
          EXPECT_EQ(squares, (Squares{{0, 32 * 9.0}, {32, 32 * 9.0}}));
          EXPECT_EQ(pull_all(client), filled(64, 0));
          workers.barrier();
          client.run(
              {.kind = Kind::pull, .flags = held, .iteration = 1, .keys = {0, 64}, .scale = 0.5f});
          EXPECT_EQ(pull_all(client), filled(64, -1.5f));
        });
}

TEST(Server, RefusesToReleaseWhatOthersHaveNotPushed) {
  ps::Setup setup = weights_of(16);
  setup.lanes = 2;
  const std::vector<std::string> errors = run_scene(
      {.workers = 1, .servers = 1, .keys = 16, .setup = setup}, [](Client& client, comm::Group&) {
        const std::vector<float> gradient = filled(16, 1);
        client.start({.kind = Kind::push,
                      .flags = held,
                      .iteration = 1,
                      .keys = {0, 16},
                      .values = {gradient.data()}});
        client.start({.kind = Kind::pull, .flags = held, .iteration = 1, .keys = {0, 16}});
        client.run({.kind = Kind::push,
                    .flags = held,
                    .iteration = 1,
                    .keys = {0, 16},
                    .values = {gradient.data()},
                    .lanes = {1, 2}});
      });
  EXPECT_NE(errors[0].find("have not yet pushed"), std::string::npos) << errors[0];
}

TEST(Server, HoldsOnlyWholeTensorsBack) {
  const std::vector<std::string> errors =
      run_scene({.workers = 1, .servers = 1, .keys = 16, .setup = weights_of(16)},
                [](Client& client, comm::Group&) {
                  const std::vector<float> gradient = filled(8, 1);
                  client.run({.kind = Kind::push,
                              .flags = held,
                              .iteration = 1,
                              .keys = {0, 8},
                              .values = {gradient.data()}});
                });
  EXPECT_NE(errors[0].find("expected all of 'weights'"), std::string::npos) << errors[0];
}

TEST(Squares, KeepEveryBit) {
  const Squares squares = {{3, 0.1}, {70, 1e-300}, {99, INFINITY}, {uint64_t{1} << 40, 0}};
  EXPECT_EQ(squares_from_text(to_text(squares)), squares);
  EXPECT_EQ(squares_from_text(""), Squares());
  for (const char* bad : {"3", "3 x", "3 0.5x", "x 1"})
    EXPECT_THROW(squares_from_text(bad), Error) << bad;
}

TEST(Server, UsersOwnRule) {
  with_servers({.workers = 1,
                .servers = 1,
                .keys = 10,
                .setup = weights_of(10, {{"name", "largest"}}),
                .rules = {{"largest",
                           [](const Segment&, const Step&, std::span<float> values,
                              std::span<const float> gradient) {
                             for (size_t i = 0; i < values.size(); ++i)
                               values[i] = std::max(values[i], gradient[i]);
                           }}}},
               [](Client& client, comm::Group&) {
                 for (const float value : {1.0f, 3.0f, 2.0f}) {
                   static int iteration = 0;
                   const std::vector<float> gradient = filled(10, value);
                   client.run({.flags = finishes,
                               .iteration = ++iteration,
                               .keys = {0, 10},
                               .values = {gradient.data()}});
                 }
                 EXPECT_EQ(pull_all(client), filled(10, 3));
               });
}

TEST(Server, CodedPushAndPull) {
  for (const char* codec : {"fp16", "int8", "sign", "top-k 10%"}) {
    ps::Setup setup = weights_of(3000);
    setup.compress = codec;
    with_servers({.workers = 1, .servers = 2, .keys = 3000, .setup = setup}, [&](Client& client,
                                                                                 comm::Group&) {
      // Gradients of 0.5 |x - 1|^2, with error feedback on both ways.
      std::vector<float> x(3000, 0), gradient(3000), lost(3000, 0);
      for (int iteration = 1; iteration <= 300; ++iteration) {
        for (size_t i = 0; i < x.size(); ++i) gradient[i] = x[i] - 1 + lost[i];
        client.run({.flags = finishes | coded,
                    .iteration = iteration,
                    .keys = {0, 3000},
                    .values = {gradient.data()},
                    .lost = lost,
                    .learning_rate = 0.02f,
                    .sink = [&](size_t offset, std::span<const float> values, bool change) {
                      EXPECT_TRUE(change);
                      for (size_t i = 0; i < values.size(); ++i) x[offset + i] += values[i];
                    }});
      }
      const double mean = std::accumulate(x.begin(), x.end(), 0.0) / 3000;
      EXPECT_NEAR(mean, 1, 0.1) << codec;
    });
  }
}

// A worker that fetched the values themselves in between, for a checkpoint, continues from those:
// the coded answers add up to what the servers have.
TEST(Server, CodedAnswersFollowAPlainPull) {
  for (const char* codec : {"int8", "top-k 10%"}) {
    ps::Setup setup = weights_of(3000);
    setup.compress = codec;
    with_servers({.workers = 1, .servers = 2, .keys = 3000, .setup = setup}, [&](Client& client,
                                                                                 comm::Group&) {
      std::vector<float> x(3000, 0), gradient(3000);
      for (size_t i = 0; i < gradient.size(); ++i) gradient[i] = std::sin(static_cast<float>(i));
      const auto add = [&](size_t offset, std::span<const float> values, bool) {
        for (size_t i = 0; i < values.size(); ++i) x[offset + i] += values[i];
      };
      for (int iteration = 1; iteration <= 200; ++iteration) {
        client.run({.flags = finishes | coded,
                    .iteration = iteration,
                    .keys = {0, 3000},
                    .values = {gradient.data()},
                    .learning_rate = 0.1f,
                    .sink = add});
        if (iteration == 3) x = pull_all(client);
        std::fill(gradient.begin(), gradient.end(), 0.0f);  // one change, then only news of it
      }
      const std::vector<float> there = pull_all(client);
      for (size_t i = 0; i < x.size(); ++i) ASSERT_NEAR(x[i], there[i], 1e-4) << codec;
    });
  }
}

// The error that a request of the only worker gets.
std::string refusal(const Setup& setup, const std::function<void(Client&)>& ask) {
  const auto errors = run_scene({.workers = 1, .servers = 1, .keys = 10, .setup = setup},
                                [&](Client& client, comm::Group&) { ask(client); });
  return errors[0];
}

TEST(Server, RefusesWithTheWorkersName) {
  const auto push = [](uint64_t keys, float value, std::vector<uint64_t> list = {}) {
    return [=](Client& client) {
      const std::vector<float> gradient = filled(keys, value);
      client.run(
          {.flags = finishes,
           .iteration = 1,
           .keys = {0, 10},
           .list = list.empty() ? std::nullopt : std::optional<std::span<const uint64_t>>(list),
           .values = {gradient.data()}});
    };
  };
  EXPECT_EQ(refusal(weights_of(10), push(10, 1)), "");
  EXPECT_EQ(
      refusal(weights_of(10), push(10, NAN)),
      "server 0 refused the exchange of worker 0 at iteration 1: [ps] push: got nan for key 0 "
      "of 'weights', expected finite numbers; set check_numbers = true to find the first op whose "
      "output is not finite");
  EXPECT_NE(refusal(weights_of(10), push(10, INFINITY)).find("got inf"), std::string::npos);
  EXPECT_NE(refusal(weights_of(10), push(2, 1, {5, 4})).find("not ascending"), std::string::npos);
  EXPECT_NE(refusal(weights_of(10),
                    [](Client& client) {
                      const std::vector<float> gradient = filled(10, 1);
                      client.run({.flags = finishes,
                                  .iteration = 0,
                                  .keys = {0, 10},
                                  .values = {gradient.data()}});
                    })
                .find("worker 0: got iteration 0, expected one after 0"),
            std::string::npos);
  EXPECT_NE(refusal(weights_of(10, {{"name", "sgdd"}}), [](Client&) {}).find("sgd"),
            std::string::npos);
}

TEST(Server, AssignsAndReturnsStates) {
  with_servers(
      {.workers = 1, .servers = 2, .keys = 40, .setup = weights_of(40, {{"name", "momentum"}})},
      [](Client& client, comm::Group&) {
        std::vector<float> state(40), got(40);
        std::iota(state.begin(), state.end(), 0.0f);
        client.run({.kind = Kind::assign, .keys = {0, 40}, .values = {state.data()}, .state = 0});
        client.run({.kind = Kind::pull,
                    .keys = {0, 40},
                    .state = 0,
                    .sink = [&](size_t offset, std::span<const float> values, bool) {
                      std::copy(values.begin(), values.end(), got.begin() + offset);
                    }});
        EXPECT_EQ(got, state);
      });
}

}  // namespace
}  // namespace artel::ps
