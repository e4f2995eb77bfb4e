// Creates the objects that a configuration describes.
#pragma once

#include "artel/data/dataset.h"
#include "artel/data/images/augment.h"
#include "artel/data/tables/table_encoder.h"
#include "artel/nn/zoo/registry.h"
#include "artel/run/config/config.h"
#include "artel/run/config/part.h"
#include "artel/train/lane_count.h"
#include "artel/train/trainer.h"

namespace artel {

struct RunData {
  data::DatasetPtr train;
  data::DatasetPtr validation;  // null unless the configuration asks for one
  data::DatasetPtr test;        // may have no samples
  data::Augmentation augment;

  const data::SampleLayout& layout() const { return train->layout(); }
  // The part for evaluation after each epoch. It may have no samples.
  Part judge() const { return validation ? Part::validation : Part::test; }
  // Throws for a part that this data does not have.
  const data::DatasetPtr& at(Part part) const;
};

// "54,000 training, 6,000 validation and 10,000 test samples".
std::string sizes_of(const RunData& data);

// Options for converting the columns of a table to samples.
data::TableOptions table_options(const RunConfig& config);

// Opens the data of a run. Fetches a set of the catalogue if it is missing. Encodes a table as a
// trained network has `learnt` it, if given.
RunData open_data(const RunConfig& config,
                  const std::shared_ptr<const data::TableEncoder>& learnt = {});
// Prepares data once before several workers open it: fetches it, and creates files such as a
// vocabulary. Does nothing for sparse samples, which leave no files and may be too many to read
// twice.
void prepare_data(const RunConfig& config);

// One sample as the network sees it, after augmentation.
TensorType sample_type(const data::SampleLayout& layout, const data::Augmentation& augment);

// The name of a class, or its number if it has none.
std::string class_name(const data::SampleLayout& layout, int64_t index);

// The configured options of a zoo model. `classes` is the data's number; 0: as published.
nn::ModelOptions model_options(const ModelConfig& config, int64_t classes);
// `classes` as above, for models of the zoo.
Model make_model(const ModelConfig& config, int64_t classes);
// Creates the model for samples of a layout, with the vocabulary of their tokenizer.
Model make_model(ModelConfig config, const data::SampleLayout& layout);

// `layout` is that of the data. Errors of scaled values are reported in the original unit.
TrainerOptions trainer_options(const RunConfig& config, const data::SampleLayout& layout = {});

// Inputs for the number of lanes of a new run with this many workers (train/lane_count.h).
LaneRequest lane_request(const RunConfig& config, const Model& model, const TensorType& sample,
                         int workers);

// The values of train.class_weights for the samples of this data. Throws if their number is not
// that of the classes.
std::vector<double> class_weights(const RunConfig& config, const data::Dataset& train);

// The number of parameter servers of the run; 0 for strategies without them. Throws if servers are
// requested for such a strategy.
int server_count(const RunConfig& config);
// True if the run continues when a worker other than worker 0 dies.
bool outlives_workers(const RunConfig& config);
// True if the remaining workers continue when any of them dies.
bool is_elastic(const RunConfig& config);
// True if each worker's part of the state is copied to another one.
bool has_mirrors(const RunConfig& config);

// File name in the folder of a published model, as on Hugging Face.
inline constexpr const char* kPublishedConfig = "config.json";
// True if the path names a language model in one file, *.gguf.
bool is_gguf_file(const std::filesystem::path& path);

// Selects weights of a checkpoint: the averaged ones, if there are any, or the trained ones.
enum class Weights { averaged, trained };

// The weights of a run, a checkpoint, a published model's folder or a file of any known format.
NamedTensors weights_at(const std::filesystem::path& path, Weights which = Weights::averaged);
// Weights under the names of a network; published files may use variants. Throws for an untied head
// if the network has none.
NamedTensors weights_for(const ModelConfig& config, const std::filesystem::path& path,
                         Weights which = Weights::averaged);
// Loads the configured weights, if any, except those of new layers. Logs unused tensors, except
// those of `elsewhere`. Throws for weights that do not fit, for a published model whose computation
// differs from ours, and for new layers that do not exist.
void load_configured_weights(Trainer& trainer, const ModelConfig& config,
                             const NamedTensors& elsewhere = {});

}  // namespace artel
