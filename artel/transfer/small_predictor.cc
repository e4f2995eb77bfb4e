#include "artel/transfer/small_predictor.h"

#include "artel/base/bytes.h"
#include "artel/base/error.h"
#include "artel/base/text.h"
#include "artel/data/images/image.h"
#include "artel/data/text/tokenizer.h"
#include "artel/run/samples/samples.h"
#include "artel/tensor/npy.h"

namespace artel::transfer {

SmallPredictor::SmallPredictor(const std::filesystem::path& folder, int threads)
    : where_(folder.string()), threads_(threads), model_(SmallModel::load(folder)) {
  layout_.classes = model_.made.classes;
  layout_.class_names = model_.made.class_names;
  if (model_.made.classes == 0) layout_.target_kind = data::TargetKind::values;
}

void SmallPredictor::open_base_once() {
  if (extractor_) return;
  const Features& made = model_.made;
  require(!made.base.empty(), ErrorKind::unsupported,
          "[{}] was fitted on features of unknown origin, expected NPY or NPZ files of such "
          "features",
          where_);
  require(made.columns.empty(), ErrorKind::unsupported,
          "[{}] was fitted with columns of a table, too ({}); give it features (NPZ) made with "
          "`artel features --join`",
          where_, join(made.columns, ", "));
  base_ = std::make_unique<BaseNetwork>(
      open_base({.name = made.base, .weights = made.weights, .overrides = made.overrides}));
  TensorType sample = base_->sample;
  if (base_->reads_images() && made.side > 0)
    sample.shape = {sample.shape[0], made.side, made.side};
  if (base_->reads_text()) {
    texts_.tokenizer = data::make_tokenizer(base_->tokenizer, "");
    texts_.input = sample.shape;
    texts_.input_type = DType::i32;
  }
  prepare_ = data::Augmentation::parse(base_->prepare);
  base_->sample = sample;
  extractor_ = std::make_unique<Extractor>(*base_, sample, made.request, threads_);
}

Tensor SmallPredictor::scores_of_rows(const Tensor& prepared) {
  FeaturePart part;
  part.layers = (*extractor_)(prepared);
  return model_.scores(Features::rows(part), threads_);
}

Tensor SmallPredictor::scores_of(const std::filesystem::path& file) {
  const std::string extension = file.extension().string();
  if (extension == ".npz") {
    const Features features = Features::load(file);
    return model_.scores(Features::rows(features.test.size() > 0 ? features.test : features.train),
                         threads_);
  }
  if (extension == ".npy") {
    const Tensor rows = read_npy(file).to(DType::f32);
    require(rows.shape().rank() == 2, ErrorKind::shape, "[{}] got {}, expected rows of features",
            file.string(), to_string(rows.shape()));
    return model_.scores(rows, threads_);
  }
  open_base_once();
  require(base_->reads_images(), ErrorKind::invalid_argument,
          "[{}] the base of the model reads texts; give them with --text", file.string());
  data::Image image = data::read_picture(map_file(file), base_->sample.shape);
  Random unused{0};
  prepare_.apply(image, unused);
  return scores_of_rows(
      Tensor::from<float>({1, image.channels, image.height, image.width}, image.pixels));
}

Tensor SmallPredictor::scores_of_text(const std::string& text,
                                      const std::optional<std::string>& second) {
  open_base_once();
  require(base_->reads_text(), ErrorKind::invalid_argument,
          "--text: the base of the model reads images; give it files");
  return scores_of_rows(text_sample(text, second, texts_));
}

}  // namespace artel::transfer
