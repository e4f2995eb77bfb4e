// Workers that were started differently are told what differs and whose it is, before a step is
// made.
#include "artel/train/loop/agreement.h"

#include <gtest/gtest.h>

#include "artel/train/strategies/synchronous.h"
#include "tests/unit/train/workers.h"

namespace artel {
namespace {

// The verdict on the workers' facts. It must be the same on all.
std::string verdict(int workers, const std::function<void(int, Cluster&)>& body) {
  std::vector<std::string> messages(static_cast<size_t>(workers));
  on_workers(workers, [&](int rank, Cluster& cluster) {
    try {
      body(rank, cluster);
    } catch (const Error& error) {
      messages[rank] = error.what();
    }
  });
  for (const std::string& message : messages) EXPECT_EQ(message, messages[0]);
  return messages[0];
}

TEST(Agreement, NamesTheFactsThatDifferAndWhoseTheyAre) {
  const auto check = [](const std::vector<Facts>& facts) {
    return verdict(static_cast<int>(facts.size()), [&](int rank, Cluster& cluster) {
      check_agreement(*cluster.group(), facts[rank]);
    });
  };
  const Facts usual = {{"lr", "0.1"}, {"seed", "4"}};
  EXPECT_EQ(check({usual, usual, usual}), "");
  const std::string advice =
      "; start all with the same configuration, data and version, on processors of one kind";
  EXPECT_EQ(check({usual, usual, {{"lr", "0.1"}, {"seed", "5"}}}),
            "the workers were started differently: worker 2 has 'seed = 5', workers 0, 1 have "
            "'seed = 4'" +
                advice);
  EXPECT_EQ(check({{{"lr", "0.2"}, {"seed", "5"}}, usual, usual}),
            "the workers were started differently: workers 1, 2 have 'lr = 0.1', worker 0 has "
            "'lr = 0.2'; workers 1, 2 have 'seed = 4', worker 0 has 'seed = 5'" +
                advice);
  EXPECT_EQ(check({usual, {{"lr", "0.1"}, {"seed", "5"}}, {{"lr", "0.3"}, {"seed", "4"}}}),
            "the workers were started differently: worker 1 has 'seed = 5', workers 0, 2 have "
            "'seed = 4'; worker 2 has 'lr = 0.3', workers 0, 1 have 'lr = 0.1'" +
                advice);
  EXPECT_EQ(
      check({usual, {{"lr", "0.1"}}}),
      "the workers were started differently: worker 1 has '', worker 0 has 'seed = 4'" + advice);
}

// How a worker is started.
struct Start {
  Model model = network();
  TrainerOptions trainer = trainer_options({});
  FitOptions fit = {.batch_size = 13, .epochs = 1, .validation = samples()};
  data::DatasetPtr data = samples();
};

// The error if worker 1 of 3 is started with this change.
std::string verdict_of(const std::function<void(Start&)>& change) {
  return verdict(3, [&](int rank, Cluster& cluster) {
    Start start;
    if (rank == 1) change(start);
    Trainer(cluster, start.model, start.trainer).fit(start.data, start.fit);
  });
}

data::DatasetPtr other_samples(int64_t changed) {
  Tensor x({40, 1, 6, 6}), y({40}, DType::i32);
  Random random{5};
  for (float& v : x.values<float>()) v = random.normal();
  for (int32_t& v : y.values<int32_t>()) v = static_cast<int32_t>(random.below(3));
  x.values<float>()[changed * 36 + 7] += 1;
  return data::tensor_dataset(x, y);
}

TEST(Agreement, CoversEveryOptionThatCanChangeABit) {
  struct Case {
    const char *own, *others;
    std::function<void(Start&)> change;
  };
  const std::vector<Case> cases = {
      {"loss = mse", "loss = cross_entropy", [](Start& s) { s.trainer.loss = "mse"; }},
      {"label_smoothing = 0.1", "label_smoothing = 0",
       [](Start& s) { s.trainer.label_smoothing = 0.1; }},
      {"seed = 5", "seed = 4", [](Start& s) { s.trainer.seed = 5; }},
      {"lanes = 6", "lanes = 8", [](Start& s) { s.trainer.lanes = 6; }},
      {"exact_convolutions = yes", "exact_convolutions = no",
       [](Start& s) { s.trainer.exact_convolutions = true; }},
      {"check_numbers = yes", "check_numbers = no",
       [](Start& s) { s.trainer.check_numbers = true; }},
      {"check_memory = yes", "check_memory = no", [](Start& s) { s.trainer.check_memory = true; }},
      {"freeze = 0", "freeze = ", [](Start& s) { s.trainer.freeze = {"0"}; }},
      {"cluster.reduction = \"fast\"", "cluster.reduction = \"auto\"",
       [](Start& s) { s.trainer.strategy_options.of<SynchronousOptions>().reduction = "fast"; }},
      {"optimizer.momentum = 0.8", "optimizer.momentum = 0.9",
       [](Start& s) { s.trainer.optimizer = optim::sgd(0.1, {.momentum = 0.8}); }},
      {"batch_size = 16", "batch_size = 13", [](Start& s) { s.fit.batch_size = 16; }},
      {"keep_last_batch = yes", "keep_last_batch = no",
       [](Start& s) { s.fit.keep_last_batch = true; }},
      {"epochs = 2", "epochs = 1", [](Start& s) { s.fit.epochs = 2; }},
      {"steps = 2", "steps = 0", [](Start& s) { s.fit.steps = 2; }},
      {"augment = flip",
       "augment = ", [](Start& s) { s.fit.augment = data::Augmentation::parse({"flip"}); }},
      {"mixup = 0.2", "mixup = 0",
       [](Start& s) { s.fit.augment = data::Augmentation::parse({"mixup 0.2"}); }},
      {"target_accuracy = 0.9", "target_accuracy = 0",
       [](Start& s) { s.fit.target_accuracy = 0.9; }},
      {"patience = 2", "patience = 0", [](Start& s) { s.fit.patience = 2; }},
      {"max_seconds = 60", "max_seconds = 0", [](Start& s) { s.fit.max_seconds = 60; }},
      {"save_every = 2", "save_every = 0", [](Start& s) { s.fit.save_every = 2; }},
      {"timeline = yes", "timeline = no", [](Start& s) { s.fit.timeline = true; }},
      {"validation samples = 0", "validation samples = 40",
       [](Start& s) { s.fit.validation = nullptr; }},
      {"validation sample 13 = ", "validation sample 13 = ",
       [](Start& s) { s.fit.validation = other_samples(13); }},
      {"training sample 39 = ", "training sample 39 = ", [](Start& s) {
         s.data = other_samples(39);
       }}};
  for (const Case& c : cases) {
    const std::string said = verdict_of(c.change);
    EXPECT_NE(said.find(fmt::format("worker 1 has '{}", c.own)), std::string::npos)
        << c.own << ": " << said;
    EXPECT_NE(said.find(fmt::format("workers 0, 2 have '{}", c.others)), std::string::npos)
        << c.own << ": " << said;
  }
}

TEST(Agreement, CoversTheWholeNetwork) {
  struct Case {
    const char* layer;  // that the message names
    Model model;
  };
  // The usual one: conv, batch_norm, relu, max_pool, flatten, dropout, dense, relu, dense.
  // Activations are part of the layer before them.
  const auto with = [](nn::Layer conv, nn::Layer norm, nn::Layer pool, nn::Layer dropout,
                       nn::Layer act) {
    return nn::sequential(
        {conv, norm, nn::relu(), pool, nn::flatten(), dropout, nn::dense(8), act, nn::dense(3)});
  };
  const nn::Layer conv = nn::conv(4, {3, 3}, {.padding = {1, 1}}), norm = nn::batch_norm(),
                  pool = nn::max_pool({2, 2}), dropout = nn::dropout(0.2), act = nn::relu();
  const std::vector<Case> cases = {
      {"0", with(nn::conv(4, {3, 3}, {.stride = {2, 2}, .padding = {2, 2}}), norm,
                 nn::max_pool({1, 1}), dropout, act)},
      {"1", with(conv, nn::batch_norm({.epsilon = 1e-3}), pool, dropout, act)},
      {"1", with(conv, nn::batch_norm({.momentum = 0.2}), pool, dropout, act)},
      {"3", with(conv, norm, nn::average_pool({2, 2}), dropout, act)},
      {"5", with(conv, norm, pool, nn::dropout(0.3), act)},
      {"6", with(conv, norm, pool, dropout, nn::activation("gelu"))}};
  for (size_t i = 0; i < cases.size(); ++i) {
    const std::string said = verdict_of([&](Start& s) { s.model = cases[i].model; });
    EXPECT_NE(said.find("worker 1 has 'network = "), std::string::npos) << i << ": " << said;
    EXPECT_NE(said.find(fmt::format("'{}", cases[i].layer)), std::string::npos)
        << i << ": " << said;
  }
}

TEST(Agreement, LetsWorkersDifferInWhatChangesNoBit) {
  EXPECT_EQ(verdict_of([](Start& s) {
              s.trainer.threads = 2;
              s.trainer.memory_limit = size_t{1} << 30;
              s.fit.loader_threads = 2;
              s.fit.keep_last = 1;
              s.fit.after_step.push_back([](const TrainingState&) { return true; });
            }),
            "");
}

}  // namespace
}  // namespace artel
