"""What a review looks at beside the plan: the front, the usual ways to deploy, curves over the draft length, roofs."""
