// Touched rows of embedding tables: exchanged and updated alone, with the bits of whole tables.
#include "artel/train/step/touched_rows.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "artel/predict/batches.h"
#include "artel/train/step/exchange.h"
#include "tests/unit/comm/ranks.h"
#include "tests/unit/train/workers.h"

namespace artel {
namespace {

TEST(TouchedRows, AreThoseWithABitSet) {
  ThreadPool pool(2);
  constexpr size_t kColumns = 3;
  std::vector<float> table(10000 * kColumns);
  table[7 * kColumns + 2] = 1;
  table[8 * kColumns] = -0.0f;
  table[9999 * kColumns] = std::numeric_limits<float>::quiet_NaN();
  TouchedRows rows = touched_rows(table, kColumns, pool);
  EXPECT_EQ(rows, (TouchedRows{7, 8, 9999}));
  std::vector<float> packed(rows.size() * kColumns), back(table.size());
  pack_rows(table, rows, kColumns, packed);
  unpack_rows(packed, rows, kColumns, back);
  EXPECT_TRUE(same_bits(table, back));
  merge_rows(rows, {2, 8, 10});
  EXPECT_EQ(rows, (TouchedRows{2, 7, 8, 10, 9999}));
  const std::vector<RowRun> runs = runs_of(rows);
  ASSERT_EQ(runs.size(), 4u);
  EXPECT_EQ(runs[1].first, 7u);
  EXPECT_EQ(runs[1].count, 2u);
}

TEST(TouchedRows, AreAgreedOn) {
  for (const char* transport : {"shm", "tcp on hosts 012"})
    comm::with_ranks(3,
                     [](comm::Group& group) {
                       const auto rank = static_cast<uint32_t>(group.rank());
                       TouchedRows own = {5, 10 + rank};
                       if (rank == 1) own.clear();
                       EXPECT_EQ(agree_on_rows(group, own, 4, "rows"), (TouchedRows{5, 10, 12}));
                       EXPECT_EQ(agree_on_rows(group, own, 3, "rows"), std::nullopt);
                       EXPECT_EQ(agree_on_rows(group, {}, 0, "rows"), TouchedRows());
                     },
                     {.transport = transport, .token = "rows"});
}

constexpr size_t kTableRows = 100'000, kRowWidth = 32, kDense = 64;

// Partial sums of one rank, with a few dense numbers around the table.
Memory partial_sum(uint64_t seed, size_t touched) {
  Memory memory = cpu().allocate((2 * kDense + kTableRows * kRowWidth) * sizeof(float));
  Random random{seed};
  const std::span<float> all = memory.floats();
  for (size_t i = 0; i < kDense; ++i) all[i] = all[all.size() - 1 - i] = random.normal();
  for (size_t i = 0; i < touched; ++i) {
    const size_t row = random.below(kTableRows);
    for (size_t column = 0; column < kRowWidth; ++column)
      all[kDense + row * kRowWidth + column] = random.normal();
  }
  return memory;
}

struct Exchanged {
  std::vector<float> sum;
  int64_t bytes = 0;  // sent by all ranks
};

// The sum over `layout`, whose ranks are on hosts of their own.
Exchanged exchanged_over(const comm::LaneLayout& layout, const std::string& strategy, bool by_rows,
                         size_t touched) {
  Exchanged result;
  std::mutex mutex;
  const auto size = static_cast<int>(layout.lanes_of_rank.size());
  const std::string transport = "tcp on hosts " + std::string("01234").substr(0, size);
  comm::with_ranks(size,
                   [&](comm::Group& connected) {
                     const auto group = std::make_shared<comm::Group>(std::move(connected));
                     std::vector<Memory> partials;
                     for (const comm::LaneRange& node : layout.subtrees(group->rank()))
                       partials.push_back(partial_sum(static_cast<uint64_t>(node.first), touched));
                     if (partials.empty()) partials.push_back(partial_sum(99, touched));
                     const Bucket bucket = {.bytes = partials.front().bytes(),
                                            .gradients = {{.offset = kDense * sizeof(float),
                                                           .matrix = {kTableRows, kRowWidth},
                                                           .by_rows = by_rows}}};
                     group->barrier();
                     const int64_t before = group->traffic().sent_bytes;
                     Exchange exchange({.group = group}, {.strategy = strategy});
                     exchange.begin_step(1, {bucket}, layout);
                     exchange.start(0, bucket, partials);
                     const Memory sum = exchange.wait(0);
                     const int64_t sent = group->traffic().sent_bytes - before;
                     const std::vector<float> got(sum.floats().begin(), sum.floats().end());
                     {
                       const std::lock_guard lock(mutex);
                       result.bytes += sent;
                       if (!result.sum.empty()) {
                         EXPECT_TRUE(same_bits(result.sum, got));
                       }
                       result.sum = got;
                     }
                     group->barrier();
                   },
                   {.transport = transport, .token = "rows"});
  return result;
}

TEST(TouchedRows, TravelInPlaceOfTheTable) {
  // Several partial sums on a rank, and a rank without lanes.
  for (const comm::LaneLayout& layout :
       {comm::LaneLayout{2, {1, 1}}, comm::LaneLayout{8, {3, 5}}, comm::LaneLayout{5, {2, 0, 3}}})
    for (const char* strategy : {"auto", "coordinator"}) {
      size_t sums = 0;
      for (size_t rank = 0; rank < layout.lanes_of_rank.size(); ++rank)
        sums += layout.subtrees(static_cast<int>(rank)).size();
      const Exchanged whole = exchanged_over(layout, strategy, false, 256 / sums),
                      rows = exchanged_over(layout, strategy, true, 256 / sums);
      EXPECT_TRUE(same_bits(whole.sum, rows.sum)) << strategy;
      EXPECT_LT(50 * rows.bytes, whole.bytes) << strategy << ": " << rows.bytes;
    }
}

TEST(TouchedRows, TravelWithTheTableIfThereAreMany) {
  const comm::LaneLayout layout = {2, {1, 1}};
  const Exchanged whole = exchanged_over(layout, "auto", false, 40'000),
                  rows = exchanged_over(layout, "auto", true, 40'000);
  EXPECT_TRUE(same_bits(whole.sum, rows.sum));
  EXPECT_LT(rows.bytes, whole.bytes + 1000);
}

constexpr int64_t kBagTokens = 3000;

Model bag_of_words() { return nn::sequential({nn::embedding_bag(kBagTokens, 16), nn::dense(3)}); }

data::DatasetPtr token_samples() {
  Tensor x({40, 5}, DType::i32), y({40}, DType::i32);
  Random random{5};
  for (int32_t& v : x.values<int32_t>()) v = static_cast<int32_t>(random.below(kBagTokens));
  for (int32_t& v : y.values<int32_t>()) v = static_cast<int32_t>(random.below(3));
  return data::tensor_dataset(x, y);
}

optim::OptimizerConfig lazy(optim::OptimizerConfig config) {
  config.lazy_rows = true;
  return config;
}

std::vector<float> trained_on_tokens(Cluster& cluster, const TrainerOptions& options) {
  Trainer trainer(cluster, bag_of_words(), options);
  trainer.fit(token_samples(), {.batch_size = 13, .epochs = 3});
  return flat(trainer.weights());
}

TrainerOptions with_rule(const optim::OptimizerConfig& rule, const std::string& strategy = "auto") {
  TrainerOptions options = trainer_options({.strategy = strategy});
  options.optimizer = rule;
  return options;
}

std::vector<float> trained_alone(const optim::OptimizerConfig& rule, int threads = 1) {
  Cluster cluster;
  TrainerOptions options = with_rule(rule);
  options.threads = threads;
  return trained_on_tokens(cluster, options);
}

const std::vector<optim::OptimizerConfig> kRules = {
    optim::sgd(0.1),         optim::sgd(0.1, {.momentum = 0.9}),
    optim::adagrad(0.1),     lazy(optim::sgd(0.1, {.momentum = 0.9})),
    lazy(optim::adam(0.01)), lazy(optim::adamw(0.01, {.weight_decay = 0.1}))};

TEST(TouchedRows, GiveTheBitsOfOneWorker) {
  for (const optim::OptimizerConfig& rule : kRules) {
    const std::vector<float> expected = trained_alone(rule);
    EXPECT_TRUE(same_bits(expected, trained_alone(rule, 3))) << rule.name();
    for (const int workers : {2, 3})
      for (const char* strategy : {"auto", "coordinator"})
        on_workers(workers, [&](int, Cluster& cluster) {
          EXPECT_TRUE(same_bits(expected, trained_on_tokens(cluster, with_rule(rule, strategy))))
              << rule.name() << " with " << strategy << " on " << workers;
        });
  }
}

TEST(TouchedRows, GiveTheBitsOfOneWorkerOnParameterServers) {
  for (const optim::OptimizerConfig& rule : kRules) {
    const std::vector<float> expected = trained_alone(rule);
    for (const auto& [workers, servers] : {std::pair{1, 1}, {2, 3}, {3, 2}})
      on_workers_and_servers(workers, servers, [&](int rank, Cluster& cluster) {
        const std::vector<float> got = trained_on_tokens(cluster, with_rule(rule, "ps"));
        if (rank == 0) {
          EXPECT_TRUE(same_bits(expected, got)) << rule.name() << " on " << workers;
        }
      });
  }
}

// Lazy and plain updates differ only where momentum moves rows without a gradient.
TEST(TouchedRows, LazyUpdatesDiffer) {
  EXPECT_TRUE(same_bits(trained_alone(optim::sgd(0.1)), trained_alone(lazy(optim::sgd(0.1)))));
  EXPECT_FALSE(same_bits(trained_alone(optim::adam(0.01)), trained_alone(lazy(optim::adam(0.01)))));
}

TEST(TouchedRows, LazyUpdatesOnServersNeedWholeSums) {
  TrainerOptions options = with_rule(lazy(optim::adam(0.01)), "ps");
  options.optimizer.clip_norm = 1;
  try {
    on_workers(
        1, [&](int, Cluster& cluster) { trained_on_tokens(cluster, options); }, 1);
    ADD_FAILURE();
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("lazy_rows: got true on parameter servers"),
              std::string::npos)
        << error.what();
  }
}

// Three lazy steps of Adam, by the formula in double precision.
TEST(TouchedRows, LazyAdamIsItsFormula) {
  constexpr int64_t kColumns = 16;
  const Model model = bag_of_words();
  const TensorType x = {DType::i32, {5}}, y = {DType::i32, {}};
  KernelChoices choices;
  ModelGraph graph = inference_graph(model, batch_of(x, 1));
  const Program program(std::move(graph.graph), {}, choices);
  Parameters parameters(program.parameter_entries());
  for (const ParameterEntry& entry : parameters.entries())
    parameters.set(entry.name, nn::initial_value(3, entry.name, entry.shape,
                                                 graph.initialisers.at(entry.name)));
  optim::OptimizerConfig rule = lazy(optim::adam(0.01));
  Stepper stepper(model, x, y, loss_by_name("cross_entropy"), rule, parameters, choices,
                  StepperOptions{.lanes = 4, .seed = 3});
  stepper.buckets(8);
  const SummedRegion::Part* table = nullptr;
  for (const SummedRegion::Part& part : stepper.region().parts())
    if (part.is_table) table = &part;
  ASSERT_NE(table, nullptr);
  EXPECT_TRUE(table->by_rows);
  const auto values_now = [&] {
    const Tensor tensor = parameters.get(table->whole);
    return std::vector<float>(tensor.values<float>().begin(), tensor.values<float>().end());
  };
  const std::vector<float> first = values_now();
  std::vector<double> weights(first.begin(), first.end()), m(first.size()), v(first.size());
  Random random{11};
  for (int64_t step = 1; step <= 3; ++step) {
    Tensor tokens({8, 5}, DType::i32), labels({8}, DType::i32);
    for (int32_t& token : tokens.values<int32_t>()) token = static_cast<int32_t>(random.below(60));
    for (int32_t& label : labels.values<int32_t>()) label = static_cast<int32_t>(random.below(3));
    Memory total;
    stepper.compute({.range = {0, 4}, .batch = 8, .step = step}, tokens, labels,
                    [&](int, const std::vector<Memory>& partials) { total = partials.front(); });
    const std::span<const float> gradient = SummedRegion::values(total, *table);
    for (int64_t row = 0; row < kBagTokens; ++row) {
      const auto own = gradient.subspan(static_cast<size_t>(row * kColumns), kColumns);
      if (std::ranges::all_of(own, [](float g) { return g == 0; })) continue;
      for (int64_t c = 0; c < kColumns; ++c) {
        const auto i = static_cast<size_t>(row * kColumns + c);
        const double g = gradient[i];
        m[i] = 0.9 * m[i] + 0.1 * g;
        v[i] = 0.999 * v[i] + 0.001 * g * g;
        weights[i] -= 0.01 * m[i] / (1 - std::pow(0.9, step)) /
                      (std::sqrt(v[i] / (1 - std::pow(0.999, step))) + 1e-8);
      }
    }
    stepper.update().apply(total, {.step = step, .learning_rate = 0.01f, .lanes = 4});
    const std::vector<float> now = values_now();
    for (size_t i = 0; i < now.size(); ++i) ASSERT_NEAR(now[i], weights[i], 2e-6) << step;
  }
  const std::vector<float> last = values_now();
  for (size_t i = 60 * kColumns; i < last.size(); ++i) ASSERT_EQ(first[i], last[i]) << i;
}

}  // namespace
}  // namespace artel
