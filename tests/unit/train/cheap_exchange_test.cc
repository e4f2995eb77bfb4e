// Exchanging less: local steps between averages, and packed gradients.
#include <gtest/gtest.h>

#include <cmath>

#include "artel/train/step/reduced_exchange.h"
#include "tests/support/temporary_folder.h"
#include "tests/unit/train/workers.h"

namespace artel {
namespace {

// The final weights of each of several workers.
std::vector<std::vector<float>> results(int workers, const Setting& setting) {
  std::vector<std::vector<float>> all(static_cast<size_t>(workers));
  on_workers(workers,
             [&](int rank, Cluster& cluster) { all[rank] = flat(train(cluster, setting)); });
  return all;
}

float largest_difference(const std::vector<float>& a, const std::vector<float>& b) {
  float largest = 0;
  for (size_t i = 0; i < a.size(); ++i) largest = std::max(largest, std::fabs(a[i] - b[i]));
  return largest;
}

TEST(LocalSteps, WorkersEndEqualAndEachRunIsTheSame) {
  for (const double momentum : {0.0, 0.5}) {
    const Setting setting = {.local_steps = 2, .outer_momentum = momentum};
    const auto first = results(3, setting), second = results(3, setting);
    for (const std::vector<float>& weights : first) EXPECT_TRUE(same_bits(weights, second[0]));
    EXPECT_FALSE(same_bits(first[0], alone({})));
    EXPECT_LT(largest_difference(first[0], alone({})), 0.5f);
  }
}

// One plain gradient step of all together is the mean of one step of each, by shares.
TEST(LocalSteps, MeetingAfterEachStepIsSynchronousTraining) {
  const Setting together = {.lanes = 5, .batch = 15, .fit = {.epochs = 1, .steps = 1}};
  Setting apart = together;
  apart.local_steps = 2;
  for (const int workers : {2, 3})
    EXPECT_LT(largest_difference(results(workers, apart)[0], alone(together)), 1e-5f) << workers;
}

TEST(LocalSteps, EveryWorkerStopsAtTheSameMeeting) {
  std::vector<int64_t> steps(3);
  on_workers(3, [&](int rank, Cluster& cluster) {
    Trainer trainer(cluster, network(), trainer_options({.local_steps = 4}));
    FitOptions fit = {.batch_size = 8, .epochs = 20};
    fit.after_step.push_back(
        [&](const TrainingState& state) { return rank != 1 || state.step < 6; });
    steps[rank] = trainer.fit(samples(), fit).last.step;
  });
  EXPECT_EQ(steps, (std::vector<int64_t>{8, 8, 8}));
}

TEST(LocalSteps, ResumesWithTheBitsOfARunThatWasNotStopped) {
  const TemporaryFolder folder;
  const auto run = [&](int64_t steps, bool resume, const std::string& name) {
    Setting setting = {.local_steps = 2, .outer_momentum = 0.5};
    setting.fit = {
        .steps = steps, .checkpoints = folder.path() / name, .save_every = 4, .resume = resume};
    return results(2, setting)[0];
  };
  const std::vector<float> whole = run(8, false, "whole");
  run(4, false, "parts");
  EXPECT_TRUE(same_bits(run(8, true, "parts"), whole));
}

TEST(Compression, WorkersEndEqualAndEachRunIsTheSame) {
  for (const char* codec : {"fp16", "bf16", "int8", "top-k 10%", "sign", "powersgd 2"}) {
    const auto first = results(3, {.compress = codec}), second = results(3, {.compress = codec});
    for (const std::vector<float>& weights : first)
      EXPECT_TRUE(same_bits(weights, second[0])) << codec;
    EXPECT_FALSE(same_bits(first[0], alone({}))) << codec;
    EXPECT_LT(largest_difference(first[0], alone({})), 1.0f) << codec;
  }
}

TEST(Compression, PacksAveragesToo) {
  const auto all = results(2, {.compress = "int8", .local_steps = 2});
  EXPECT_TRUE(same_bits(all[0], all[1]));
  EXPECT_LT(largest_difference(all[0], results(2, {.local_steps = 2})[0]), 0.1f);
}

TEST(Compression, SendsFewerBytes) {
  const auto sent = [](const Setting& setting) {
    int64_t bytes = 0;
    on_workers(2, [&](int rank, Cluster& cluster) {
      Trainer trainer(cluster, nn::sequential({nn::flatten(), nn::dense(512), nn::dense(3)}),
                      trainer_options(setting));
      const FitResult result = trainer.fit(samples(), {.batch_size = 16, .epochs = 5});
      // Without what workers tell each other at the beginning and at the end.
      if (rank == 0) bytes = result.epochs[3].sent_bytes - result.epochs[0].sent_bytes;
    });
    return bytes;
  };
  const int64_t plain = sent({});
  EXPECT_GT(plain, 0);
  EXPECT_LT(sent({.compress = "fp16"}), plain * 7 / 10);
  EXPECT_LT(sent({.compress = "int8"}), plain / 2);
  EXPECT_LE(sent({.local_steps = 2}), plain);
}

TEST(Compression, RefusesAnUnknownCodec) { EXPECT_THROW(results(2, {.compress = "zip"}), Error); }

TEST(ReducedExchange, FollowsWhatTheWireCosts) {
  EXPECT_FALSE(choose_reduced_exchange({.computing = 1, .waiting = 0.05, .wire = 0.9}).any());
  const ReducedExchange little =
      choose_reduced_exchange({.computing = 1, .waiting = 0.15, .wire = 0.15});
  EXPECT_EQ(little.local_steps, 8);
  EXPECT_EQ(little.compress, "");
  const ReducedExchange more =
      choose_reduced_exchange({.computing = 0.013, .waiting = 0.05, .wire = 0.058});
  EXPECT_EQ(more.local_steps, 64);
  EXPECT_EQ(more.compress, "int8");
  EXPECT_EQ(choose_reduced_exchange({.computing = 0.001, .waiting = 9, .wire = 9}).local_steps,
            128);
  EXPECT_EQ(stretched(more, 0.03, 0.013).local_steps, 128);
  // There are at least three meetings in what is left of the run.
  EXPECT_EQ(choose_reduced_exchange({.computing = 0.001, .waiting = 9, .wire = 9}, 114).local_steps,
            32);
  EXPECT_EQ(choose_reduced_exchange({.computing = 0.001, .waiting = 9, .wire = 9}, 3).local_steps,
            2);
  EXPECT_EQ(stretched(more, 0.03, 0.013, 200).local_steps, 64);
  EXPECT_EQ(stretched(more, 0.01, 0.013).local_steps, 64);
  EXPECT_EQ(stretched(more, 0.01, 0.013).compress, "int8");
}

TEST(Timeline, WorkerZeroGetsTheSpansOfAll) {
  std::vector<std::vector<TimelineSpan>> spans(2);
  on_workers(2, [&](int rank, Cluster& cluster) {
    Trainer trainer(cluster, network(), trainer_options({}));
    spans[rank] =
        trainer.fit(samples(), {.batch_size = 16, .epochs = 1, .timeline = true}).timeline.spans;
  });
  EXPECT_TRUE(spans[1].empty());
  for (const int worker : {0, 1})
    for (const char* category : {"step", "compute", "wait", "wire", "update"})
      EXPECT_TRUE(std::any_of(spans[0].begin(), spans[0].end(),
                              [&](const TimelineSpan& span) {
                                return span.worker == worker && span.category == category &&
                                       span.begin >= 0 && span.seconds >= 0;
                              }))
          << worker << " " << category;
}

}  // namespace
}  // namespace artel
