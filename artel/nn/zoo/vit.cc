#include "artel/nn/zoo/vit.h"

#include "artel/nn/initialisers.h"
#include "artel/nn/transformer.h"

namespace artel::nn {
namespace {

Layer attention_branch(const VitOptions& o) {
  return {"attention", [o](Build& build, Value x) {
            const Value qkv = named("qkv", dense(3 * o.width, transformer_dense()))(build, x);
            return named("proj", dense(o.width, transformer_dense()))(
                build, attention(qkv, {.heads = o.heads}));
          }};
}

Layer block(const VitOptions& o) {
  return chain(
      {residual(chain({named("norm1", layer_norm(o.epsilon)), named("attn", attention_branch(o)),
                       named("drop1", dropout(o.dropout))}),
                {}, false),
       residual(
           chain({named("norm2", layer_norm(o.epsilon)),
                  named("mlp", feed_forward(o.hidden > 0 ? o.hidden : 4 * o.width, o.activation)),
                  named("drop2", dropout(o.dropout))}),
           {}, false)});
}

}  // namespace

Layer vit(const VitOptions& o) {
  return {"vit", [o](Build& build, Value images) {
            Value x = named("patch_embed", patch_embedding(o.width, o.patch))(build, images);
            x = prepend_token(build, x, "cls_token");
            x = add(x, build.parameter("pos_embed", {1, x.shape()[1], o.width},
                                       truncated_normal(0.02f)));
            x = named("pos_drop", dropout(o.dropout))(build, x);
            for (int64_t i = 0; i < o.depth; ++i)
              x = named(fmt::format("blocks.{}", i), block(o))(build, x);
            // Rows are normalised one by one, and only the class token's row is needed.
            x = named("norm", layer_norm(o.epsilon))(build, take_position(x, 0));
            return named("head", dense(o.classes, transformer_dense()))(build, x);
          }};
}

NameRules vit_names() {
  return {{"^class_token", "cls_token"},
          {"^conv_proj.", "patch_embed.proj."},
          {"^encoder.pos_embedding", "pos_embed"},
          {"^encoder.layers.encoder_layer_", "blocks."},
          {"^encoder.ln.", "norm."},
          {"^heads.head.", "head."},
          {".ln_1.", ".norm1."},
          {".ln_2.", ".norm2."},
          {".self_attention.in_proj_", ".attn.qkv."},
          {".self_attention.out_proj.", ".attn.proj."},
          {".mlp.linear_1.", ".mlp.fc1."},
          {".mlp.linear_2.", ".mlp.fc2."},
          {".mlp.0.", ".mlp.fc1."},
          {".mlp.3.", ".mlp.fc2."}};
}

}  // namespace artel::nn
