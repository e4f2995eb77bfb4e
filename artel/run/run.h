// A run described by a TOML file: its data, network, training, and folder.
//
//   artel::Run run("mnist.toml");
//   run.set("train.epochs", 3);
//   run.train();
//   artel::println("accuracy {:.4f}", run.evaluate().accuracy);
//
// This is what `artel train mnist.toml --set train.epochs=3` and `artel evaluate` do: the same
// folder, the same bits. Under a launcher (mpirun, srun, `artel launch`) every process creates the
// same Run, and train() connects them; worker 0 writes the folder and reports. Calls come from one
// thread at a time.
#pragma once

#include <fmt/format.h>

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "artel/predict/predictor.h"
#include "artel/run/config/config.h"
#include "artel/run/config/part.h"
#include "artel/train/trainer.h"

namespace artel {

struct SavedRun;

// The rendezvous of workers on several machines without a launcher.
struct MeetingPlace {
  // HOST:PORT, where worker 0 listens. To join a running training: the same port on the machine of
  // any worker, or the run's folder. Several addresses, separated by commas, are tried in turn; a
  // new run begins at the first.
  std::string address = {};
  int rank = -1;  // this worker's number; -1: in the order of arrival
  // A secret shared by all workers: as text, or in a file; default: the variable ARTEL_TOKEN.
  std::string token = {}, token_file = {};
  std::string interface = {};  // network interface; empty: as routed
};

struct RunOptions {
  // The folder of the run: `out`, or runs/NAME. If both are empty: runs/STEM of STEM.toml (runs/run
  // without a file), or the first unused one of runs/STEM-2, runs/STEM-3, ...
  std::string out = {}, name = {};
  bool resume = false;           // continue from the newest checkpoint there
  bool force = false;            // resume even if settings that determine the result have changed
  bool untested_device = false;  // compute on a device that fails its self-test
  bool quiet = false;            // print neither progress nor results
  std::vector<std::string> overrides = {};  // "train.epochs=3", as after --set; applied before any
                                            // `set`
  std::vector<Callback> after_step = {}, after_epoch = {};  // called on each worker
  // While training, the first interrupt or termination signal stops after the current step and
  // saves; the second one ends the process.
  bool stop_on_signals = false;
  // All workers use worker 0's train.seed. A newcomer to a running training needs the same one.
  bool common_seed = false;
  // If true, evaluate, predict, and similar functions use the network that train() has left in
  // memory. Otherwise they read the folder, and workers with parts of a network need no memory for
  // all of it.
  bool uses_network = true;
  std::filesystem::path trace = {};  // timeline of all workers for Perfetto; empty for none
  std::optional<MeetingPlace> join = {};
};

struct RunResult {
  int rank = 0;                       // of this worker; -1: a parameter server, without results
  std::filesystem::path folder = {};  // at worker 0
  FitResult fit = {};
  int64_t parameters = 0;
  int signal = 0;  // signal that stopped the run, on any worker
  // The content of summary.json, on every worker. Times and traffic are those of this worker.
  std::string summary = {};
};

class Run {
 public:
  // Throws like read_config (run/config/config.h).
  explicit Run(const std::filesystem::path& file, RunOptions options = {});
  // Relative paths in the configuration refer to the working folder.
  explicit Run(const RunConfig& config, RunOptions options = {});
  // Opens the folder of a trained run, to use it or to continue training.
  static Run open(const std::filesystem::path& folder, RunOptions options = {});
  ~Run();
  Run(Run&&) noexcept;
  Run& operator=(Run&&) noexcept;

  // Sets a key like --set KEY=VALUE: text needs no quotes, and a list is text such as
  // R"(["flatten", "dense 10"])". Throws the same errors, and then changes nothing.
  void set(std::string_view key, std::string_view value);
  void set(std::string_view key, const char* value) { set(key, std::string_view(value)); }
  template <typename T>
  requires std::is_arithmetic_v<T>
  void set(std::string_view key, T value) { set(key, std::string_view(fmt::format("{}", value))); }

  const RunConfig& config() const { return config_; }
  // Set on worker 0 by train(), or by a function that uses the trained network; otherwise empty.
  const std::filesystem::path& folder() const { return folder_; }

  // Trains alone, or with the workers and servers that a launcher has started or that meet at
  // `join`. Throws if the configuration requires other processes and there are none. Each call is a
  // separate run, in its own folder unless it resumes. Workers can join only once, so several runs
  // among them share one Cluster.
  RunResult train();
  // Trains with the caller's cluster, which must have the servers that the strategy needs.
  RunResult train(Cluster& cluster);

  // True if the configuration requires workers or servers that were not started.
  bool lacks_workers() const;
  // Fetches missing data. Call once before several workers open it.
  void prepare_data() const;

  // Uses the trained network, in this process only: as left by train() or, without that, as in the
  // newest checkpoint of the folder.
  Evaluation evaluate(Part part = Part::test);
  // The network's output for rows of inputs.
  Tensor predict(const Tensor& rows);
  // Predicts for a picture (JPEG, PNG) or the samples of an NPY or NPZ file.
  Tensor predict(const std::filesystem::path& file);
  Predictor predictor();
  // The layout of samples, with the names of classes.
  const data::SampleLayout& layout();
  // The trained network with everything that belongs to it (run/folder/saved_run.h).
  const SavedRun& saved();

 private:
  struct Trained {
    data::SampleLayout layout;
    Parameters weights;
  };

  // Relative paths refer to `base`.
  Run(std::string text, std::string where, std::filesystem::path base, RunOptions options);
  std::optional<comm::GroupOptions> place() const;
  std::shared_ptr<const data::TableEncoder> learnt_table(Cluster& cluster) const;
  BatchSize fixed_batch_size(Cluster& cluster) const;

  std::string text_, where_;  // TOML, and its file's name
  std::filesystem::path base_;
  RunOptions options_;
  RunConfig config_;
  std::filesystem::path folder_;
  std::optional<Trained> trained_;
  std::unique_ptr<SavedRun> saved_;  // created on demand
};

}  // namespace artel
