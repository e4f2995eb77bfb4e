// The table of all configuration keys except those of strategies. Internal to run/config.
#pragma once

#include "artel/base/keys.h"
#include "artel/base/text.h"
#include "artel/comm/transports/transports.h"
#include "artel/data/sets.h"
#include "artel/nn/loss.h"
#include "artel/nn/metric.h"
#include "artel/run/config/config.h"
#include "artel/run/config/shrink_keys.h"
#include "artel/train/strategies/registry.h"

namespace artel {

// Keys that used to have another name. The old names still work, with a warning.
struct RenamedKey {
  std::string_view old_name, name;
  std::string_view since;  // the version that has the new name
};
inline constexpr RenamedKey kRenamedKeys[] = {
    // Easily confused with keep_last_batch.
    {"train.keep_last", "train.keep_checkpoints", "0.2.0"},
};
// "`mse`, `l1` or `kl`".
inline std::string one_of(const std::vector<std::string>& names) {
  std::string text;
  for (size_t i = 0; i < names.size(); ++i)
    text += fmt::format("{}`{}`", i == 0 ? "" : i + 1 < names.size() ? ", " : " or ", names[i]);
  return text;
}

// Visits the keys that the program has registered.
void visit_own_keys(StrategyOptions& own, KeyVisitor& field);

// Calls field(Key, member) for each key in the order of the documentation, then for the keys of
// strategies and of the program. `field` is a KeyVisitor that takes ByteSize, WorkerCount,
// BatchSize, ClassWeights and optim::Options, too.
void visit_keys(RunConfig& config, auto& field) {
  auto& data = config.data;
  const std::string sets = fmt::format(
      "A data set by name (`artel data list` shows them), or the kind of data at `data.path`: {}.",
      one_of(data::kinds_of_own_data()));
  field({"data.set", sets}, data.set);
  field({"data.path",
         "Folder or file of the data, relative to the folder of the configuration file (after "
         "`--set`: to the working folder), or a pattern such as `logs/*.csv` of several tables. "
         "Empty: where `artel data get` puts the set; it is fetched first if missing."},
        data.path);
  field({"data.test_path", "A second file with tests, for `csv`, `libsvm` and `labelled_text`."},
        data.test_path);
  field(
      {"data.target", "Name of the target column, for `csv` and `labelled_text`. Empty: the last."},
      data.target);
  field({.name = "data.task",
         .help = "The targets: `classes` or `values` of a `csv` (`automatic`: guessed from the "
                 "column); `reconstruct`: each sample is its own target, for autoencoders; "
                 "`masked`: hidden tokens and next sentences of a `text`, for BERT.",
         .choices = {"automatic", "classes", "values", "reconstruct", "masked"}},
        data.task);
  field({"data.ignore", "Columns of a `csv` or `labelled_text` to ignore, such as ids."},
        data.ignore);
  field({"data.categorical", "Columns of a `csv` whose numbers are names, such as postal codes."},
        data.categorical);
  field({"data.scale_target",
         "Scale the target values of a `csv` to mean 0 and deviation 1. Predictions and errors "
         "have the unit of the column; the loss is that of the scaled values."},
        data.scale_target);
  field({"data.decimal_comma", "The numbers of a `csv` have decimal commas: 1,5."},
        data.decimal_comma);
  field({.name = "data.test_fraction",
         .help = "Share held out at random for testing if the data has no test part. 0: no test.",
         .most = 0.9},
        data.test_fraction);
  field(
      {.name = "data.samples",
       .help = "Number of training samples to use, chosen by the seed, for quick trials. 0: all."},
      data.samples);
  field({.name = "data.validation",
         .help = "Share of the training samples, chosen by the seed, to hold out and evaluate "
                 "after each epoch; the test part is then reserved for `artel evaluate`. 0: the "
                 "test part is evaluated after each epoch.",
         .most = 0.9},
        data.validation);
  field({"data.balanced",
         "Repeat training samples of rarer classes until all classes have equally many, which "
         "makes an epoch longer. See also `train.class_weights`."},
        data.balanced);
  field({.name = "data.folds",
         .help = "Number of random parts of the training samples for cross-validation, one of "
                 "which is held out instead of `data.validation`. `artel train --folds` trains "
                 "once for each. 0: none."},
        data.folds);
  field(
      {.name = "data.fold", .help = "Index of the held-out part, from 0, if `data.folds` is set."},
      data.fold);
  field(
      {"data.augment",
       "Transforms of each image, in the order given: `normalise MEAN... DEVIATION...`, `crop SIZE "
       "[PADDING]`, `flip`, `resize H [W]`, `jitter B [C [S]]`, `cutout SIZE`, "
       "`rotate DEGREES`, `resized_crop SIZE [LEAST]`, `cover SIZE`, `erase [PROBABILITY]`, "
       "`channels 1|3`, `mixup STRENGTH`. "
       "Random ones are skipped for test data."},
      data.augment);
  field({"data.image_size",
         "Side of the images of a `folder`: pictures are scaled to cover it and cropped in the "
         "middle. 0: the size of the pictures or, if it varies, the median of their shorter sides, "
         "at most 224."},
        data.image_size);
  field({"data.skip_broken",
         "Skip pictures of a `folder` that cannot be decoded; the log counts and names them. This "
         "decodes all pictures once at the start. Otherwise such pictures are an error."},
        data.skip_broken);
  field({.name = "data.context", .help = "Tokens in one sample of `text`.", .least = 1},
        data.context);
  field({"data.stride", "Distance between samples of `text`, in tokens. 0: `context`."},
        data.stride);
  field({"data.lines",
         "Use each line of a `text` as a sample, such as a name, cut or padded to `context`."},
        data.lines);
  field({"data.tokenizer",
         "Tokenizer of `text`: `character`, `byte`, `bpe N` or `wordpiece N` (learns a vocabulary "
         "of N tokens; the default for `labelled_text` is `wordpiece 8192`), or the path of "
         "`vocab.json` with `merges.txt`, `vocab.txt` or `tokenizer.json`."},
        data.tokenizer);
  field({.name = "data.threads",
         .help = "Background threads for reading and augmenting.",
         .least = 1,
         .most = 256},
        data.threads);

  auto& model = config.model;
  field({"model.name",
         "A model of the zoo, such as `lenet5`, `resnet18`, `vgg11_bn`, `resnet20`; `artel info` "
         "lists "
         "them."},
        model.name);
  field({"model.layers",
         "The layers as text instead of a name: `[\"conv 64 3x3\", \"relu\", \"flatten\", "
         "\"dense 10\"]`."},
        model.layers);
  field({"model.weights",
         "Initial weights: a file (safetensors, also in several pieces, PyTorch, NPZ, NPY, HDF5, "
         "GGUF, TensorFlow.js, ONNX), a run, a checkpoint, or the folder of a published model."},
        model.weights);
  field({"model.new_layers",
         "Name prefixes of parameters to initialise at random even if `weights` has them, for a "
         "new head."},
        model.new_layers);
  field({"model.classes", "Number of classes of a zoo model. 0: as many as the data has."},
        model.classes);
  field({"model.small_images",
         "Use the 32 x 32 variant of networks made for 224 x 224 (VGG, ResNet)."},
        model.small_images);
  field({"model.width", "Channels of the first stage, or units of hidden layers. 0: as published."},
        model.width);
  field({"model.depth", "Blocks of a transformer. 0: as published."}, model.depth);
  field({"model.heads", "Attention heads of a transformer. 0: as published."}, model.heads);
  field({"model.key_heads",
         "Heads of keys and values of `llama`: neighbouring attention heads share one. 0: as "
         "published, or as many as `model.heads`."},
        model.key_heads);
  field({"model.positions",
         "Maximum number of positions in a transformer's samples. 0: as published."},
        model.positions);
  field(
      {"model.vocabulary",
       "Number of tokens that a transformer reads, if these are not the classes. 0: as published."},
      model.vocabulary);
  field({"model.patch", "Side of the patches of a vision transformer. 0: as published."},
        model.patch);
  field({"model.hidden",
         "Units of a transformer's feed-forward networks. 0: four times the width; of `llama`, in "
         "proportion to the published width."},
        model.hidden);
  field(
      {"model.activation",
       "Activation of a transformer's feed-forward networks: one of `model.layers`, such as `gelu` "
       "or `relu`. Empty: as published."},
      model.activation);
  field({.name = "model.epsilon",
         .help = "Added to the variance in a transformer's layer norms. 0: as published.",
         .most = 1},
        model.epsilon);
  field({.name = "model.rotary_base",
         .help = "Base of the angles of `llama`'s rotary positions. 0: as published.",
         .most = 1e9},
        model.rotary_base);
  field({"model.untied_head",
         "Networks that score tokens (GPT-2, Llama, BERT's pre-training heads) use separate "
         "weights for "
         "it instead of the token table."},
        model.untied_head);
  field(
      {.name = "model.dropout", .help = "Dropout rate of a transformer in training.", .most = 0.9},
      model.dropout);

  field({"model.adapters",
         "`lora RANK [ALPHA]`: low-rank adapters for the dense layers of a transformer. They are "
         "trained, and the weights of these layers may be frozen; their names begin with `lora.`. "
         "Empty: none."},
        model.adapters);

  auto& train = config.train;
  field({.name = "train.batch_size",
         .help = "Samples per step, over all workers; or `\"32 per worker\"`: multiplied by the "
                 "number of workers at the start, and fixed for the run.",
         .least = 1},
        train.batch_size);
  field({"train.keep_last_batch",
         "Form a smaller batch of the samples of an epoch that do not fill one. Otherwise they are "
         "skipped, different ones in each epoch."},
        train.keep_last_batch);
  field(
      {"train.epochs", "Number of passes over all samples, 1 or more. Unused if `steps` is given."},
      train.epochs);
  field({"train.steps", "Stop after this many steps in total. 0: `epochs` applies."}, train.steps);
  field({"train.seed", "Random seed for initial weights, order, augmentation, and dropout."},
        train.seed);
  field({"train.optimizer",
         "Update rule: a name, or a table with options; see [optimizers](optimizers.md)."},
        train.optimizer);
  field({"train.schedule",
         "Learning-rate schedule: a name, or a table; see [optimizers](optimizers.md)."},
        train.schedule);
  const std::string loss = fmt::format("Loss to minimise: {}.", one_of(loss_names()));
  field({"train.loss", loss}, train.loss);
  const std::string metrics = fmt::format(
      "Metrics to report with the loss: {}; see [metrics](metrics.md). Empty: the accuracy, for "
      "data with classes.",
      one_of(metric_names()));
  field({"train.metrics", metrics}, train.metrics);
  field({.name = "train.label_smoothing",
         .help = "Share of the target spread over all classes in training. The test loss does not "
                 "use it.",
         .most = 1},
        train.label_smoothing);
  field({"train.class_weights",
         "Weights of the classes in training: `balanced` (rare classes count as much as frequent "
         "ones), or a list of numbers in the order of the classes. For `cross_entropy` and "
         "`binary_cross_entropy`; the test loss does not use them. Empty: equal weights."},
        train.class_weights);
  field({"train.clip_norm",
         "Scale the gradient down to this norm. 0: never. The same as `clip_norm` of "
         "`train.optimizer`; only one of them may be given."},
        train.clip_norm);
  field({"train.best_by",
         "Criterion for the best epoch: `loss`, or one of `train.metrics` such as `accuracy`, on "
         "the validation part or, without one, the test part (without both: in training). "
         "`checkpoints/best` names its checkpoint, which `artel evaluate RUN --best` uses."},
        train.best_by);
  field({"train.patience", "Early stopping: epochs without an improvement of `best_by`. 0: never."},
        train.patience);
  field({.name = "train.target_accuracy",
         .help = "Stop once the accuracy on the validation part or, without one, the test part "
                 "reaches this. 0: never.",
         .most = 1},
        train.target_accuracy);
  field(
      {"train.test",
       "Test the network after each epoch. With `false`, only `artel evaluate` tests, which saves "
       "time and, with sharded weights, communication."},
      train.test);
  field({"train.test_batches",
         "Maximum number of batches of `batch_size` samples for the test after each epoch, spread "
         "evenly over the part; `artel evaluate` tests all of it. 0: all."},
        train.test_batches);
  field({"train.noise_every",
         "Steps between measurements of the gradient noise scale, which estimates the largest "
         "useful batch size; see [metrics](metrics.md#gradient-noise). 0: no measurements."},
        train.noise_every);
  field({"train.max_seconds", "Stop after this many seconds. 0: never."}, train.max_seconds);
  field({"train.save_every",
         "Steps between checkpoints, in addition to those at the end of each epoch and when "
         "training stops. 0: no additional ones."},
        train.save_every);
  field({"train.keep_checkpoints",
         "Number of checkpoints to keep, in addition to the best one. 0: all."},
        train.keep_checkpoints);
  field({"train.freeze", "Name prefixes of parameters that are not trained."}, train.freeze);
  field({"train.cache",
         "Compute the outputs of the frozen layers below the lowest trained one once for all "
         "epochs, and cache them in a file (below `$ARTEL_DATA/features`). The weights stay the "
         "same, bit for bit. Not possible if the samples change from epoch to epoch, or if the "
         "trained layers read more than one value of the frozen ones; the log then says so."},
        train.cache);
  field({"train.tune",
         "Measure the fastest kernel for each shape once, and store the choices with the run "
         "(`choices.txt`)."},
        train.tune);
  field({"train.exact_convolutions",
         "Do not use Winograd kernels, whose rounding errors are larger."},
        train.exact_convolutions);
  field(
      {"train.memory_limit",
       "Memory limit for the activations of a worker, such as `\"2 GiB\"`. Fewer lanes then run "
       "together, and values that still do not fit are recomputed. In a pipeline: for those of the "
       "whole network for one lane. 0: no limit."},
      train.memory_limit);
  field(
      {"train.check_numbers", "Stop at the first layer that outputs NaN or infinity, and name it."},
      train.check_numbers);
  field({"train.check_memory",
         "Stop at the first layer that reads uninitialised memory or writes outside its own "
         "memory: a check of Artel's kernels, several times slower."},
        train.check_memory);
  field({.name = "train.precision",
         .help = "Precision of matrix products: `fp32`, or `bf16` (summed in fp32) on processors "
                 "that support it.",
         .choices = {"fp32", "bf16"}},
        train.precision);

  visit_shrink_keys(config, field);
  auto& cluster = config.cluster;
  field(
      {.name = "cluster.workers",
       .help = "Number of worker processes on this machine, like `-n`. A range such as `\"2..8\"`: "
               "the run waits while it has fewer than 2 workers, and accepts no more than 8.",
       .least = 1,
       .most = 4096},
      cluster.workers);
  field({.name = "cluster.threads",
         .help = "Cores per worker. 0: all, divided among the workers on a machine.",
         .most = 4096},
        cluster.threads);
  field({"cluster.device",
         "Device of each worker: `cpu`, `opencl:1` (number 1 in the list of `artel devices`), "
         "`opencl` (the workers of a machine are spread over its OpenCL devices), or `auto` (the "
         "same, or `cpu` if no OpenCL device is a GPU); see [devices](devices.md)."},
        cluster.device);
  field({.name = "cluster.device_timeout",
         .help = "Seconds after which a device that does not answer counts as hung.",
         .least = 1,
         .most = 1e6},
        cluster.device_timeout);
  field({.name = "cluster.lanes",
         .help = "Number of equal parts of a batch. The bits of a run depend on it, not on the "
                 "number of workers. 0: 8, or less for small batches: the largest power of two "
                 "that gives each lane one sample (32 with batch norm). A run that starts with "
                 "more workers gets more lanes.",
         .most = 4096},
        cluster.lanes);
  field({"cluster.memory",
         "Memory available to each worker, such as `\"2 GiB\"`. A network that needs more is "
         "refused, with suggestions; `cluster.mesh = \"auto\"` respects the limit. 0: the "
         "machine's memory, divided by its number of workers."},
        cluster.memory);
  field(
      {"cluster.bucket_size",
       "Minimum size of a gradient bucket, the unit of communication during the backward pass, "
       "such "
       "as `\"1 MiB\"`. 0: chosen by the measured links between hosts, 4 MiB on one machine. Exact "
       "sums have the same bits with any size."},
      cluster.bucket_size);
  const std::vector<std::string> names = strategy_names();
  const std::string strategies =
      fmt::format("Strategy by which workers train together: `{}`; see [strategies](#strategies).",
                  join(names, "`, `"));
  field({.name = "cluster.strategy", .help = strategies, .choices = {names.begin(), names.end()}},
        cluster.strategy);
  std::vector<std::string_view> transports = {"auto"};
  std::string transport = "`auto` (depends on how the run was started)";
  for (const comm::TransportDefinition* each : comm::transports()) {
    transports.push_back(each->name);
    transport += fmt::format(", `{}` ({})", each->name, each->help);
  }
  field({.name = "cluster.transport", .help = transport + ".", .choices = transports},
        cluster.transport);
  field({"cluster.encrypt",
         "Encrypt all connections between machines with TLS 1.3, with a key derived from the run's "
         "token; see [security](security.md). Not available with MPI, which makes its own "
         "connections."},
        cluster.encrypt);
  field({.name = "cluster.instructions",
         .help = "Vector instructions of all workers, on which bits depend: `own` (each "
                 "processor's; workers that differ are refused), `common` (the best that all "
                 "workers at the start have), or at most `sse4`, `avx2`, `avx512` or `neon`.",
         .choices = {"own", "common", "sse4", "avx2", "avx512", "neon"}},
        cluster.instructions);
  field({"cluster.elastic",
         "Continue without workers that die, in the same processes and with the bits of an "
         "undisturbed run. Also with parameter servers, except `ddpg`; not with MPI. Otherwise all "
         "workers stop."},
        cluster.elastic);
  field({.name = "cluster.restarts",
         .help =
             "Maximum number of restarts of each worker, with growing pauses. `artel train -n N` "
             "restarts workers killed by a signal; `artel launch` also restarts workers whose "
             "machine or connection was lost. A worker that dies twice before the same step stops "
             "the run.",
         .most = 1000},
        cluster.restarts);
  field({.name = "cluster.checkpoint_copies",
         .help = "Number of machines that store each checkpoint, including worker 0's, as a "
                 "precaution against the loss of one. One worker per machine writes its own state; "
                 "if it has only a part, worker 0 sends it the files during training.",
         .least = 1,
         .most = 1000},
        cluster.checkpoint_copies);
  field({.name = "cluster.patience",
         .help = "Seconds without a heartbeat after which a worker or server counts as dead, "
                 "because it is stopped or cut off. Workers send heartbeats while they compute.",
         .least = 1,
         .most = 1e6},
        cluster.patience);
  field({.name = "cluster.join_timeout",
         .help = "Timeout in seconds for all workers to arrive at the start.",
         .least = 1,
         .most = 1e6},
        cluster.join_timeout);
  field({.name = "cluster.timeout",
         .help = "Timeout in seconds of exchanges between living workers.",
         .least = 1,
         .most = 1e6},
        cluster.timeout);
  field({.name = "cluster.wait",
         .help = "Seconds that workers wait for others if there are fewer than `cluster.workers` "
                 "requires, or too few for their memory.",
         .least = 1,
         .most = 1e9},
        cluster.wait);
  field({.name = "cluster.servers",
         .help = "Number of parameter servers, for the strategies that need them. 0: one.",
         .most = 4096},
        cluster.servers);
  field({"cluster.servers_inside",
         "Run servers inside the worker processes instead of in separate ones. Not with MPI."},
        cluster.servers_inside);

  field({"observe.live",
         "Worker 0 writes the activity of all workers to `live.json` once a second, for `artel "
         "top` and the dashboard, and detects events."},
        config.observe.live);
  field({"observe.on_event",
         "Command to run on events: a loss that explodes or stagnates, a worker that joins, "
         "leaves, or is far slower than the others, an almost full disk, the failure of the run. "
         "Its arguments are the kind of event, the step, a sentence, and the folder of the run. "
         "Training does not wait for it; it is killed after 30 seconds."},
        config.observe.on_event);
  field({.name = "observe.tensorboard",
         .help = "Contents of the event files for TensorBoard: `all` adds histograms of the "
                 "weights, the confusion matrix and mistakes as pictures, and texts after each "
                 "epoch; or `scalars` only.",
         .choices = {"all", "scalars"}},
        config.observe.tensorboard);
  field({.name = "observe.mistakes",
         .help = "For pictures with classes: number of mistakes to store as pictures after each "
                 "epoch, most confident first (`mistakes.png`, `mistakes.json`). 0: none.",
         .most = 1000},
        config.observe.mistakes);
  field({.name = "observe.sample_tokens",
         .help = "For language models: number of tokens that worker 0 generates after each epoch "
                 "(`texts.jsonl`). 0: none.",
         .most = 100000},
        config.observe.sample_tokens);
  field({"observe.sample_prompt",
         "Prompt of these texts. Empty: the beginning of the first sample of the test part."},
        config.observe.sample_prompt);

  visit_strategy_keys(cluster.strategy_options, field);
  visit_own_keys(config.own, field);
}

}  // namespace artel
