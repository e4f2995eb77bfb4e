// Members of a cluster die, and the others continue with the bits of an undisturbed run.
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include <chrono>
#include <csignal>

#include "artel/exec/kernel.h"
#include "artel/graph/op.h"
#include "tests/support/error_of.h"
#include "tests/support/temporary_folder.h"
#include "tests/unit/train/workers.h"

namespace artel {
namespace {

TEST(Membership, ChangesBetweenTwoSteps) {
  const std::vector<float> expected = alone({});
  // The last case makes another worker the first one.
  for (const std::vector<int>& staying : {std::vector{0, 1}, std::vector{0, 2}, std::vector{2, 1}})
    on_workers(3, [&](int rank, Cluster& cluster) {
      const bool stays = std::count(staying.begin(), staying.end(), rank) > 0;
      Setting setting;
      setting.fit.after_step.push_back([&](const TrainingState& state) {
        if (state.step == 4) cluster.reform(stays ? staying : std::vector{rank});
        return stays || state.step < 4;
      });
      Trainer trainer(cluster, network(), trainer_options(setting));
      FitOptions fit = setting.fit;
      fit.batch_size = setting.batch;
      const FitResult result = trainer.fit(samples(), fit);
      EXPECT_EQ(result.last.step, stays ? 9 : 4);
      EXPECT_EQ(cluster.size(), stays ? 2 : 1);
      if (stays) {
        EXPECT_EQ(staying[cluster.rank()], rank);
        EXPECT_TRUE(same_bits(expected, flat(trainer.weights()))) << "worker " << rank;
      }
    });
}

TEST(Membership, ChangesAfterAnEpoch) {
  for (const int64_t local_steps : {1, 2}) {
    Setting setting = {.local_steps = local_steps};
    on_workers(3, [&](int rank, Cluster& cluster) {
      const bool stays = rank < 2;
      FitOptions fit = setting.fit;
      fit.batch_size = setting.batch;
      fit.after_epoch.push_back([&](const TrainingState& state) {
        if (state.epoch == 1) cluster.reform(stays ? std::vector{0, 1} : std::vector{rank});
        return stays;
      });
      Trainer trainer(cluster, network(), trainer_options(setting));
      EXPECT_EQ(trainer.fit(samples(), fit).last.step, stays ? 9 : 3);
      if (stays && local_steps == 1) {
        EXPECT_TRUE(same_bits(alone(setting), flat(trainer.weights()))) << "worker " << rank;
      }
    });
  }
}

// With local steps each worker has its own moments, which are averaged for a checkpoint.
TEST(Membership, AGroupThatBreaksAtACheckpointLeavesTheOptimizer) {
  on_workers(2, [](int rank, Cluster& cluster) {
    const Setting setting = {.local_steps = 2};
    Trainer trainer(cluster, network(), trainer_options(setting));
    FitOptions fit = setting.fit;
    fit.batch_size = setting.batch;
    std::vector<float> before;
    fit.after_epoch.push_back([&](const TrainingState&) -> bool {
      before = flat(trainer.checkpoint().optimizer);
      if (rank == 1) fail(ErrorKind::cancelled, "worker 1 ends");
      return true;
    });
    EXPECT_THROW(cluster.attempt([&] { trainer.fit(samples(), fit); }), Error);
    EXPECT_FALSE(before.empty());
    EXPECT_TRUE(same_bits(before, flat(trainer.checkpoint().optimizer))) << "worker " << rank;
  });
}

TEST(Membership, RefusesMembersThatCannotBe) {
  on_workers(2, [](int rank, Cluster& cluster) {
    EXPECT_THROW(cluster.reform({rank, rank}), Error);
    EXPECT_THROW(cluster.reform({rank, 2}), Error);
    EXPECT_THROW(cluster.reform({1 - rank}), Error);
    EXPECT_EQ(cluster.size(), 2);
  });
}

// The others do not come: the worker that waited for them still has the group of before.
TEST(Membership, AFailedAttemptToFormAGroupChangesNothing) {
  const std::vector<float> expected = alone({});
  const std::string name = fmt::format("reform_fails_{}", ::getpid());
  std::vector<std::thread> workers;
  for (int rank = 0; rank < 2; ++rank)
    workers.emplace_back([&, rank] {
      Cluster cluster(
          comm::GroupOptions{.rank = rank, .size = 2, .address = name, .join_timeout = 0.5});
      const Membership before = cluster.membership();
      const int cores = cluster.cores();
      if (rank == 0) {
        EXPECT_THROW(cluster.reform({1, 0}), Error);
      }
      EXPECT_EQ(cluster.membership().generation, before.generation);
      EXPECT_EQ(cluster.group(), before.group.get());
      EXPECT_EQ(cluster.rank(), rank);
      EXPECT_EQ(cluster.cores(), cores);
      EXPECT_TRUE(same_bits(expected, flat(train(cluster, {})))) << "worker " << rank;
    });
  for (std::thread& worker : workers) worker.join();
}

// The new worker 0 saves in the folder given to the first one.
TEST(Membership, CheckpointsGoOnInTheirFolder) {
  const TemporaryFolder folder;
  on_workers(2, [&](int rank, Cluster& cluster) {
    Setting setting;
    FitOptions fit = setting.fit;
    fit.batch_size = setting.batch;
    if (rank == 0) fit.checkpoints = folder / "all";
    fit.after_step.push_back([&](const TrainingState& state) {
      if (state.step == 2) cluster.reform({rank});
      require(rank == 1 || state.step < 2, ErrorKind::cancelled, "the first worker ends");
      return true;
    });
    Trainer trainer(cluster, network(), trainer_options(setting));
    if (rank == 0)
      EXPECT_THROW(trainer.fit(samples(), fit), Error);
    else
      trainer.fit(samples(), fit);
  });
  EXPECT_EQ(checkpoint::checkpoint_at(folder / "all").step, 9);
}

// A group can break when some of its workers have finished a step and others have not.
TEST(Membership, GoesOnWithTheStateOfWhoHasFinishedMost) {
  const std::vector<float> expected = alone({.fit = {.epochs = 3}});
  for (const int behind : {0, 1})
    on_workers(2, [&](int rank, Cluster& cluster) {
      Trainer trainer(cluster, network(), trainer_options({}));
      trainer.fit(samples(), {.batch_size = 13, .epochs = 3, .steps = 4});
      const checkpoint::Checkpoint earlier = trainer.checkpoint();
      trainer.fit(samples(), {.batch_size = 13, .epochs = 3, .steps = 5});
      if (rank == behind) trainer.restore(earlier);
      cluster.reform({0, 1});
      EXPECT_EQ(trainer.fit(samples(), {.batch_size = 13, .epochs = 3}).last.samples, 4 * 13);
      EXPECT_TRUE(same_bits(expected, flat(trainer.weights()))) << "worker " << rank;
    });
}

// An op that does nothing, but the process dies in its backward pass when `dies_in` says so.
int64_t dies_in = 0;

Kernel copy_and_perhaps_die(const KernelRequest& request, bool backward) {
  const int64_t n = request.out().elements();
  return {.run = [n, backward](const KernelRun& run) {
    if (backward && run.context.step == dies_in) {
      // Long enough for the buckets of later layers to get through to all.
      std::this_thread::sleep_for(std::chrono::milliseconds(300));
      raise(SIGKILL);
    }
    std::copy_n(run.in(0), n, run.out(0));
  }};
}

void register_mortal() {
  const auto same_type = [](const InferContext& context) {
    return std::vector<TensorType>{context.type(0)};
  };
  register_op({.name = "mortal",
               .infer = same_type,
               .gradient = [](GradientContext& context) -> std::vector<Value> {
                 return {context.graph().add_one("mortal_backward", {context.gradient()})};
               }});
  register_op({.name = "mortal_backward", .infer = same_type});
  register_kernel({.op = "mortal", .make = [](const KernelRequest& request) {
                     return copy_and_perhaps_die(request, false);
                   }});
  register_kernel({.op = "mortal_backward", .make = [](const KernelRequest& request) {
                     return copy_and_perhaps_die(request, true);
                   }});
}

// Weights, running statistics and the optimizer's memory.
std::vector<float> everything(const Trainer& trainer) {
  const checkpoint::Checkpoint all = trainer.checkpoint();
  std::vector<float> values = flat(all.weights), memory = flat(all.optimizer);
  values.insert(values.end(), memory.begin(), memory.end());
  return values;
}

// Runs `body(rank)` in as many processes as workers. What it throws, or says, is a failure of its
// process. Returns how each has ended, as waitpid says.
std::vector<int> in_processes(int workers, const std::function<std::string(int rank)>& body) {
  std::vector<pid_t> processes;
  for (int rank = 0; rank < workers; ++rank) {
    processes.push_back(fork());
    if (processes.back() != 0) continue;
    std::string failure;
    try {
      failure = body(rank);
    } catch (const std::exception& error) {
      failure = error.what();
    }
    if (!failure.empty()) fmt::print(stderr, "worker {}: {}\n", rank, failure);
    _exit(failure.empty() ? 0 : 1);
  }
  std::vector<int> ends;
  for (const pid_t process : processes) {
    ends.push_back(-1);
    if (process > 0) waitpid(process, &ends.back(), 0);
  }
  return ends;
}

// The body of a worker process; returns the error.
std::string survive(const std::string& group, int rank, const Model& model,
                    const TrainerOptions& options, const FitOptions& fit,
                    const std::vector<float>& before, const std::vector<float>& after) {
  Cluster cluster(comm::GroupOptions{.rank = rank, .size = 3, .address = group});
  Trainer trainer(cluster, model, options);
  FitOptions watched = fit;
  bool undone = false;
  watched.after_step.push_back([&](const TrainingState& state) {
    if (state.step == 3) undone = same_bits(everything(trainer), before);
    return true;
  });
  const FitResult result = trainer.fit(samples(), watched);
  if (cluster.size() != 2) return fmt::format("{} workers", cluster.size());
  if (!undone) return "not as after the last finished step";
  if (result.last.samples != 6 * fit.batch_size)
    return fmt::format("{} samples", result.last.samples);
  return same_bits(everything(trainer), after) ? "" : "not as in an undisturbed run";
}

// Worker 1 of three processes is killed in the middle of step 4: the sums of the last layers have
// been exchanged, those of the first have not.
TEST(Membership, ADeathInTheMiddleOfAStepUndoesTheStep) {
  register_mortal();
  const nn::Layer mortal = {
      "mortal", [](nn::Build& build, Value x) { return build.graph().add_one("mortal", {x}); }};
  // The two in the middle are a bucket each.
  const Model model =
      nn::sequential({nn::flatten(), nn::dense(1100), nn::batch_norm(), mortal, nn::dense(1100),
                      nn::relu(), nn::dense(1100), nn::relu(), nn::dense(3)});
  const TrainerOptions options = {
      .optimizer = optim::adam(0.001), .seed = 4, .threads = 1, .lanes = 3};
  const FitOptions fit = {.batch_size = 12, .epochs = 2};
  const auto undisturbed = [&](int64_t steps) {
    Cluster cluster;
    Trainer trainer(cluster, model, options);
    FitOptions until = fit;
    until.steps = steps;
    trainer.fit(samples(), until);
    return everything(trainer);
  };
  const std::vector<float> before = undisturbed(3), after = undisturbed(0);

  const std::string group = fmt::format("membership_test_{}", ::getpid());
  const std::vector<int> ends = in_processes(3, [&](int rank) {
    dies_in = rank == 1 ? 4 : 0;
    return survive(group, rank, model, options, fit, before, after);
  });
  EXPECT_TRUE(WIFSIGNALED(ends[1]) && WTERMSIG(ends[1]) == SIGKILL);
  EXPECT_EQ(ends[0], 0);
  EXPECT_EQ(ends[2], 0);
}

// Makes this process die when it reads what lies in the middle of the weights.
void poison(Parameters& parameters) {
  std::signal(SIGSEGV, [](int) { raise(SIGKILL); });
  const std::span<float> block = parameters.block();
  const auto page = static_cast<uintptr_t>(::sysconf(_SC_PAGESIZE));
  const auto middle = reinterpret_cast<uintptr_t>(block.data() + block.size() / 2) / page * page;
  require(mprotect(reinterpret_cast<void*>(middle), page, PROT_NONE) == 0, ErrorKind::io,
          "mprotect has failed");
}

// Worker 0 dies while it sends its weights to the others. They have a mixture and refuse to
// continue with it. A checkpoint helps.
TEST(Membership, HalfReceivedWeightsAreNotTrained) {
  const Model model = nn::sequential({nn::flatten(), nn::dense(40000), nn::dense(3)});
  const TrainerOptions options = {.threads = 1, .lanes = 2};
  const FitOptions fit = {.batch_size = 12, .steps = 2};
  const std::string group = fmt::format("half_received_{}", ::getpid());
  const std::vector<int> ends = in_processes(2, [&](int rank) -> std::string {
    Cluster cluster(comm::GroupOptions{.rank = rank, .size = 2, .address = group});
    Trainer trainer(cluster, model, options);
    trainer.fit(samples(), {.batch_size = 12, .steps = 1});
    const checkpoint::Checkpoint good = trainer.checkpoint();
    if (rank == 0) poison(trainer.parameters());
    const auto error_of_fit = [&]() -> std::string {
      return artel::error_of([&] { trainer.fit(samples(), fit); });
    };
    if (const std::string said = error_of_fit();
        said.find("the weights of this worker are incomplete") == std::string::npos)
      return said;
    trainer.restore(good);
    return trainer.fit(samples(), fit).last.step == 2 ? "" : "the checkpoint did not help";
  });
  EXPECT_TRUE(WIFSIGNALED(ends[0]) && WTERMSIG(ends[0]) == SIGKILL) << ends[0];
  EXPECT_EQ(ends[1], 0);
}

// Samples of which this process cannot read one.
class Deadly final : public data::Dataset {
 public:
  int64_t size() const override { return good_->size(); }
  const data::SampleLayout& layout() const override { return good_->layout(); }
  void read(int64_t, std::span<std::byte>, std::span<std::byte>) const override { raise(SIGKILL); }

 private:
  data::DatasetPtr good_ = samples();
};

// Worker 0 dies before the workers have agreed on their configuration. The other one continues
// alone.
TEST(Membership, ADeathBeforeTheFirstStepOfAFit) {
  const FitOptions fit = {.batch_size = 13, .epochs = 3};
  const std::vector<float> expected = alone({.fit = fit});
  const std::string group = fmt::format("death_at_start_{}", ::getpid());
  const std::vector<int> ends = in_processes(2, [&](int rank) -> std::string {
    Cluster cluster(comm::GroupOptions{.rank = rank, .size = 2, .address = group});
    Trainer trainer(cluster, network(), trainer_options({}));
    trainer.fit(samples(), {.batch_size = 13, .epochs = 3, .steps = 4});
    trainer.fit(rank == 0 ? std::make_shared<Deadly>() : samples(), fit);
    return same_bits(flat(trainer.weights()), expected) ? "" : "not as in an undisturbed run";
  });
  EXPECT_TRUE(WIFSIGNALED(ends[0]) && WTERMSIG(ends[0]) == SIGKILL) << ends[0];
  EXPECT_EQ(ends[1], 0);
}

}  // namespace
}  // namespace artel
